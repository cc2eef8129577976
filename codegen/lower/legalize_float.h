#pragma once

#include "quern/codegen/target.h"
#include "quern/codegen/uop/uop.h"

namespace quern {

// Removes arithmetic on float16 and bfloat16. Their values are kept as float32 that a half type can
// represent; each op is computed in float32 and rounded after, where it can leave those values at
// all. No second rounding shows: float32 has 24 bits, and for + - * / and the square root twice the
// bits of the narrow type and two more are enough (Figueroa, "When is double rounding innocuous?",
// 1995).
//
// Half values remain in memory only. bfloat16, and float16 where the target cannot convert it, is
// loaded and stored as uint16 from the same buffer, which keeps its dtype; otherwise float16 is
// loaded and stored, and CAST to and from float32. BITCASTs of float16 remain too, and the operands
// of WMMA.
UOp legalize_floats(Graph& graph, UOp sink, const Target& target);

}  // namespace quern
