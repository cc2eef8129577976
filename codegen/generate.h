#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "quern/codegen/api.h"
#include "quern/codegen/program.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/codegen/target.h"
#include "quern/codegen/uop/linear.h"
#include "quern/codegen/uop/uop.h"

namespace quern {

class Simplifier;

// A step from one graph to the next.
struct Pass {
  std::string_view name;
  std::string_view afterwards;  // what holds then
  UOp (*run)(Simplifier& s, UOp sink, const Target& target);
};

// Those that follow `lower`, in order.
QUERN_API std::span<const Pass> passes();

// What may watch and bend the pipeline. Everything is optional.
struct GenerateHooks {
  // Called with "lower" or a pass's name, and the result, for `quern show`, tests and timing.
  std::function<void(std::string_view pass, UOp sink)> after_pass;
  std::function<void(const LinearUOps& uops)> after_linearize;
};

// Codegen, whole: a schedule to a Program. Pure and deterministic: equal arguments give equal
// bytes. Throws AstError for what only lowering can see (an in-place read at another element) and
// CompileError for what the target cannot do.
QUERN_API Program generate(const Schedule& schedule, const GenerateHooks& hooks = {});

// The same from the parts that name a schedule. Throws ScheduleError if an opt is illegal.
QUERN_API Program generate(const Ast& ast, std::span<const Opt> opts, const Target& target,
                           const GenerateHooks& hooks = {});

}  // namespace quern
