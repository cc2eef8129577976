#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "codegen/linear.h"
#include "codegen/program.h"
#include "codegen/schedule.h"

namespace quern {

// The passes, in order: X(name, what holds afterwards).
#define QUERN_PASSES(X)                                                          \
  X(lower, "scalar uops with LANEs; accesses in bounds or gated")                \
  X(expand, "LANEs have become vector lanes; addresses are scalar")              \
  X(legalize_floats, "no arithmetic on half or bfloat16")                        \
  X(decompose_transcendentals, "no EXP2, LOG2, SIN, unless the target has them") \
  X(legalize_index, "no Index type")                                                   \
  X(split_vectors, "no Alu op is wider than the target's vectors")

// What may watch and bend the pipeline. Everything is optional.
struct GenerateHooks {
  // Called with each pass's name and result, for `quern show`, tests and timing.
  std::function<void(std::string_view pass, UOp sink)> after_pass;
  std::function<void(const LinearUOps& uops)> after_linearize;
};

// Codegen, whole: a schedule to a Program. Pure and deterministic: equal arguments give equal
// bytes. Throws AstError for what only lowering can see (an in-place read at another element) and
// CompileError for what the target cannot do.
Program generate(const Schedule& schedule, const GenerateHooks& hooks = {});

// The same from the parts that name a schedule. Throws ScheduleError if an opt is illegal.
Program generate(const Ast& ast, std::span<const Opt> opts, const Target& target,
                 const GenerateHooks& hooks = {});

}  // namespace quern
