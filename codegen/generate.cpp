#include "quern/codegen/generate.h"

#include <algorithm>

#include "quern/codegen/error.h"
#include "quern/codegen/lower/expand.h"
#include "quern/codegen/lower/legalize_float.h"
#include "quern/codegen/lower/legalize_index.h"
#include "quern/codegen/lower/linearize.h"
#include "quern/codegen/lower/lower.h"
#include "quern/codegen/lower/split_vectors.h"
#include "quern/codegen/lower/transcendental.h"
#include "quern/codegen/render/render.h"
#include "quern/codegen/simplify/simplify.h"
#include "quern/codegen/uop/float_environment.h"
#include "quern/codegen/uop/verify.h"

namespace quern {
namespace {

// What LLVM and NVRTC still compile in seconds.
constexpr size_t kMaxUOps = 100'000;

constexpr Pass kPasses[] = {
    {"expand", "LANEs have become vector lanes; addresses are scalar", expand},
    {"legalize_floats", "no arithmetic on half or bfloat16",
     [](Simplifier& s, UOp sink, const Target& target) {
       return legalize_floats(s.graph(), sink, target);
     }},
    {"decompose_transcendentals", "no EXP2, LOG2, SIN",
     [](Simplifier& s, UOp sink, const Target& target) {
       return decompose_transcendentals(s.graph(), sink, target);
     }},
    {"legalize_index", "no Index type",
     [](Simplifier& s, UOp sink, const Target&) { return legalize_index(s.graph(), sink); }},
    {"split_vectors", "no Alu op is wider than the target's vectors", split_vectors},
};

// Which buffers the code touches, beside what the AST says of them.
std::vector<BufferParam> buffer_params(const Ast& ast) {
  std::vector<BufferParam> buffers(ast.buffers().begin(), ast.buffers().end());
  for (const AstNode& n : ast.nodes())
    if (n.op == Op::LOAD) buffers[n.buffer].read = true;
  return buffers;
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

Program generate(const Schedule& schedule, const GenerateHooks& hooks) {
  FloatEnvironment environment;
  const Target& target = schedule.target();
  Graph graph;
  Simplifier s(graph);
  Lowered lowered = lower(schedule, s);
  UOp sink = lowered.sink;
  if (hooks.after_pass) hooks.after_pass("lower", sink);
  for (const Pass& pass : kPasses) {
    sink = pass.run(s, sink, target);
    if (hooks.after_pass) hooks.after_pass(pass.name, sink);
  }
  LinearUOps uops = linearize(graph, sink, target);
  if (uops.size() > kMaxUOps)
    raise<CompileError>(
        "{}: {} uops with opts {}; at most {} are compiled. Use smaller UPCAST and UNROLL amounts",
        schedule.name(), uops.size(), to_string(schedule.applied_opts()), kMaxUOps);
  verify(uops);
  if (hooks.after_linearize) hooks.after_linearize(uops);

  Program program;
  program.name = schedule.name();
  program.source = render(program.name, uops, target);
  program.target = target;
  program.buffers = buffer_params(schedule.ast());
  program.vars.assign(schedule.ast().vars().begin(), schedule.ast().vars().end());
  std::ranges::copy(lowered.global_size, program.global_size);
  std::ranges::copy(lowered.local_size, program.local_size);
  program.has_free_local_size = schedule.has_free_local_size();
  program.flops = schedule.ast().flops();
  program.bytes = schedule.ast().bytes();
  program.applied_opts = schedule.applied_opts();
  return program;
}

Program generate(const Ast& ast, std::span<const Opt> opts, const Target& target,
                 const GenerateHooks& hooks) {
  Schedule schedule(ast, target);
  schedule.apply(opts);
  return generate(schedule, hooks);
}

}  // namespace quern
