#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>

#include "quern/codegen/ast/ast.h"
#include "quern/codegen/schedule/opt.h"
#include "quern/codegen/target.h"

namespace quern::command {

// Exit codes of the command.
inline constexpr int kDone = 0;
inline constexpr int kCheckFailed = 1;
inline constexpr int kBadInput = 2;

// Each adds its subcommand, which sets `exit_code` when it runs.
void add_devices(CLI::App& app, int& exit_code);
void add_verify(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_show(CLI::App& app, int& exit_code);

// "none", "default" or a list such as UPCAST:0:4,UNROLL:0:8, for --opts.
std::vector<Opt> parse_opts_argument(std::string_view text, const Ast& ast, const Target& target);

// Writes to stdout; throws FileError if that fails, as it does on a full disk.
void print(std::string_view text);

// A bar on stderr while long work runs; nothing where stderr is no terminal.
class Progress {
 public:
  explicit Progress(size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // May be called often: draws ten times a second at most.
  void update(size_t done, std::string_view note);

 private:
  size_t total_;
  bool shown_;
  double last_ = 0;
};

}  // namespace quern::command
