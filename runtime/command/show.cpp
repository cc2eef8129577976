#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "quern/codegen/ast/text.h"
#include "quern/codegen/error.h"
#include "quern/codegen/generate.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/codegen/uop/text.h"
#include "quern/devices/cpu/cpu.h"
#include "quern/runtime/command/command.h"
#include "quern/runtime/devices.h"
#include "quern/runtime/kernel_file.h"

namespace quern::command {
namespace {

struct ShowArguments {
  std::string file, kernel, target = "cpu", opts = "default", stage;
};

const std::vector<std::string> kStages = {"ast", "schedule", "uops", "graph", "source", "asm"};

std::string show(const ShowArguments& arguments) {
  KernelRecord kernel = find_kernel(arguments.file, arguments.kernel);
  if (arguments.stage == "ast") return print_ast(kernel.ast);
  Target target = parse_target(arguments.target);
  Schedule schedule(kernel.ast, target);
  schedule.apply(parse_opts_argument(arguments.opts, kernel.ast, target));
  if (arguments.stage == "schedule") return schedule.print(::isatty(STDOUT_FILENO) == 1);

  std::string text;
  GenerateHooks hooks;
  hooks.after_linearize = [&](const LinearUOps& uops) {
    if (arguments.stage == "uops") text = print_uops(uops);
    if (arguments.stage == "graph") text = graph_dot(uops);
  };
  Program program = generate(schedule, hooks);
  if (arguments.stage == "source") return program.source;
  if (arguments.stage != "asm") return text;
  if (target.language != Target::Language::Llvm)
    raise<ArgumentError>("target {} has no assembly; it executes the uops", arguments.target);
  return disassemble(program);
}

}  // namespace

std::vector<Opt> parse_opts_argument(std::string_view text, const Ast& ast, const Target& target) {
  if (text == "none") return {};
  if (text == "default") return default_opts(ast, target);
  return parse_opts(text);
}

void add_show(CLI::App& app, int&) {
  auto* sub = app.add_subcommand("show", "A kernel at a stage of its compilation");
  auto a = std::make_shared<ShowArguments>();
  sub->add_option("file", a->file, "Kernel file")->required();
  sub->add_option("--kernel", a->kernel, "Id of the kernel, if the file has several");
  sub->add_option("--target", a->target,
                  "cpu, cpu:generic, cpu:ARCH[:FEATURES] or interpreter (default: cpu)");
  sub->add_option("--opts", a->opts, "none, default, or a list such as UPCAST:0:4,UNROLL:0:8");
  sub->add_option("--stage", a->stage, "ast, schedule, uops, graph (DOT), source or asm")
      ->required()
      ->check(CLI::IsMember(kStages));
  sub->callback([a] {
    std::string text = show(*a);
    if (!text.ends_with('\n')) text += '\n';
    print(text);
  });
}

}  // namespace quern::command
