#pragma once

#include "quern/codegen/simplify/simplify.h"

namespace quern {

// Whether 0 <= index < size follows from the bounds of the index's parts and, if there is a gate,
// from the comparisons that it is the AND of. Sound; may say no where it is true.
bool is_in_bounds(UOp index, UOp gate, int64_t size);

// The gate under which the access is in bounds: `gate` (or null: always) if it can be proven, else
// the gate AND 0 <= index < size.
UOp guard(Simplifier& s, UOp index, UOp gate, int64_t size);

}  // namespace quern
