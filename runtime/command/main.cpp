#include <csignal>
#include <cstdio>
#include <exception>
#include <new>

#include <CLI/CLI.hpp>

#include "quern/runtime/command/command.h"

namespace quern::command {
namespace {

int run(int argc, char** argv) {
  int exit_code = kDone;
  CLI::App app("Compiles and runs tensor kernels.", "quern");
  app.require_subcommand(1);
  add_devices(app, exit_code);
  add_verify(app, exit_code);
  add_run(app, exit_code);
  add_show(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kDone : kBadInput;
  }
  return exit_code;
}

}  // namespace
}  // namespace quern::command

// `quern`: devices, verify, run, show. Exit codes: 0 done, 1 a check failed, 2 bad input.
int main(int argc, char** argv) {
  // A write beyond a limit of file sizes is then an error like that of a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  try {
    return quern::command::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("quern: out of memory\n", stderr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "quern: %s\n", e.what());
  } catch (...) {
    std::fputs("quern: an exception of no known kind\n", stderr);
  }
  return quern::command::kBadInput;
}
