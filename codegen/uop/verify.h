#pragma once

#include <span>

#include "quern/codegen/uop/linear.h"

namespace quern {

// Checks what every renderer relies on; throws std::logic_error (a bug in codegen) with the uop:
//   1. Each source stands before its user, and in a scope that is still open; an ASSIGN's value is
//      used only outside the loops of its accumulator, an accumulator only inside them.
//   2. RANGE and END, IF and ENDIF nest.
//   3. No Index, LANE, REDUCE, SINK remains, and no op outside the linearized stage.
//   4. A BARRIER is in no IF whose condition may differ between the work items of a group.
//   5. Every LOAD and STORE without a gate is in bounds for all values of what its address depends
//      on; vector accesses with their last element. One with a gate has been given that gate by
//      `guard`.
void verify(const LinearUOps& uops);

}  // namespace quern
