#include "codegen/generate.h"

#include <algorithm>

#include "codegen/error.h"
#include "codegen/expand.h"
#include "codegen/legalize_float.h"
#include "codegen/legalize_index.h"
#include "codegen/linearize.h"
#include "codegen/lower.h"
#include "codegen/render.h"
#include "codegen/simplify.h"
#include "codegen/split_vectors.h"
#include "codegen/transcendental.h"
#include "codegen/verify.h"

namespace quern {
namespace {

// What LLVM and NVRTC still compile in seconds.
constexpr size_t kMaxUOps = 100'000;

enum class Pass {
#define QUERN_X(name, text) name,
  QUERN_PASSES(QUERN_X)
#undef QUERN_X
};

UOp run(Pass pass, UOp sink, Simplifier& s, const Target& target) {
  switch (pass) {
    case Pass::lower: return sink;
    case Pass::expand: return expand(s, sink, target);
    case Pass::legalize_floats: return legalize_floats(s.graph(), sink, target);
    case Pass::decompose_transcendentals: return decompose_transcendentals(s.graph(), sink, target);
    case Pass::legalize_index: return legalize_index(s.graph(), sink);
    case Pass::split_vectors: return split_vectors(s, sink, target);
  }
  return sink;
}

constexpr std::string_view kPassNames[] = {
#define QUERN_X(name, text) #name,
    QUERN_PASSES(QUERN_X)
#undef QUERN_X
};

// Which buffers the code touches, beside what the AST says of them.
std::vector<BufferParam> buffer_params(const Ast& ast) {
  std::vector<BufferParam> buffers(ast.buffers().begin(), ast.buffers().end());
  for (const AstNode& n : ast.nodes())
    if (n.op == Op::LOAD) buffers[n.buffer].read = true;
  return buffers;
}

}  // namespace

Program generate(const Schedule& schedule, const GenerateHooks& hooks) {
  const Target& target = schedule.target();
  Graph graph;
  Simplifier s(graph);
  Lowered lowered = lower(schedule, s);
  UOp sink = lowered.sink;
  for (size_t i = 0; i < std::size(kPassNames); ++i) {
    sink = run(static_cast<Pass>(i), sink, s, target);
    if (hooks.after_pass) hooks.after_pass(kPassNames[i], sink);
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
