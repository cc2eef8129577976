#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "quern/codegen/schedule/schedule.h"
#include "quern/codegen/simplify/simplify.h"

namespace quern {

struct Lowered {
  UOp sink = nullptr;  // of the kernel's STOREs
  // Groups, or tasks in the first dimension, or work items if the local size is free.
  SInt global_size[3] = {1, 1, 1};
  int64_t local_size[3] = {1, 1, 1};
};

// AST and schedule to uops: each axis becomes a RANGE, a SPECIAL or a LANE; LOAD, CONST and STORE
// get the index and the gate that their views say; every access is provably in bounds or guarded;
// reduces that count are folded to expressions. Values are still scalars, with LANEs in the
// indices.
//
// A reduce has RANGEs of its own for the axes that it sums over, shared with reduces over the same
// axes at the same place that do not depend on each other (placement.h). Where a result is used
// along such an axis again (softmax), the axis is looped over once more.
//
// A grouped reduce has two stages: each work item stores its sum to a slot of local memory, and
// after a barrier every item sums the slots of the group, so that all of them may go on with the
// result; the results of the kernel are then stored by one of them. Where work items are padding,
// they keep step with the others and change nothing. A tile of results is likewise kept in scratch
// memory while the blocks of a reduce go by.
//
// Throws AstError if the kernel reads a buffer that it also writes at other elements than those
// written, ScheduleError if the launch is larger than the target allows.
Lowered lower(const Schedule& schedule, Simplifier& s);

}  // namespace quern
