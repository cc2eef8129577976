#pragma once

#include "quern/codegen/simplify/simplify.h"

namespace quern {

// The closed form of a reduce of `value` over `range`, or null if there is none:
//   - a value that does not depend on the range: times its size (SUM), or itself (MAX);
//   - a SUM of WHERE(conditions, a, b) where a and b do not depend on the range and each condition
//     bounds it linearly: a times the number of steps that meet them all. Counting by summing ones
//     over a triangular mask, as frameworks build an arange, becomes an index expression this way.
UOp collapse_reduce(Simplifier& s, Op op, UOp value, UOp range);

// Whether `u` depends on `what`.
bool depends_on(UOp u, UOp what);

}  // namespace quern
