#pragma once

#include "quern/codegen/target.h"
#include "quern/codegen/uop/linear.h"

namespace quern {

// Orders a graph into a list with loops. A uop goes into the innermost of the loops that it depends
// on and into no other, so what does not change in a loop stands before it. A REDUCE becomes an
// accumulator: DEFINE_ACC before its loops, a chain of ops and an ASSIGN inside; a sum of products
// is a MULACC where the target allows it. Loops nest in order of the RANGEs' numbers. Loads of a
// buffer that the kernel also writes come before its stores. Throws CompileError if there are more
// than 256 loops.
LinearUOps linearize(Graph& graph, UOp sink, const Target& target);

}  // namespace quern
