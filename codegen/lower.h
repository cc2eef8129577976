#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codegen/schedule.h"
#include "codegen/simplify.h"

namespace quern {

struct Lowered {
  UOp sink = nullptr;  // of the kernel's STOREs
  int64_t tasks = 1;   // of the SPECIAL that the thread axes became, 1 without
};

// AST and schedule to uops: each axis becomes a RANGE, a SPECIAL or a LANE; LOAD, CONST and STORE
// get the index and the gate that their views say; every access is provably in bounds or guarded;
// reduces that count are folded to expressions. Values are still scalars, with LANEs in the
// indices.
//
// A reduce has RANGEs of its own for the axes that it sums over, shared with reduces over the same
// axes at the same place that do not depend on each other. Where a result is used along such an
// axis again (softmax), the axis is looped over once more.
//
// Throws AstError if the kernel reads a buffer that it also writes at other elements than those
// written.
Lowered lower(const Schedule& schedule, Simplifier& s);

}  // namespace quern
