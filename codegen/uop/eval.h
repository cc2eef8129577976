#pragma once

#include <cstdint>
#include <span>

#include "quern/codegen/uop/dtype.h"
#include "quern/codegen/uop/op.h"

// The executable form of the semantics in op.h, for one lane. Constant folding and the interpreter
// both use it, so that a fold cannot differ from an execution.
//
// A lane is an int64: integers are sign- or zero-extended (uint64 keeps its bit pattern), bool is 0
// or 1, floats of every width are the bits of the double that equals them.
namespace quern {

int64_t float_bits(double value);
double bits_float(int64_t bits);

// Rounds a double to the float type, to nearest even, overflowing to infinity.
double round_to(DType dtype, double value);
// Wraps an integer into the (integer or bool) type's range.
int64_t wrap_to(DType dtype, int64_t value);

// The storage bits of a lane, as they stand in memory, and back.
uint64_t to_storage(DType dtype, int64_t lane);
int64_t from_storage(DType dtype, uint64_t bits);

// One lane of an Alu op. `operand` is the type of the last source (the only one that matters: that
// of WHERE's condition is bool), `result` that of the node.
int64_t eval(Op op, DType operand, DType result, std::span<const int64_t> src);

// The neutral element of ADD or MAX in that type: 0, or the lowest value (-inf for floats).
int64_t reduce_identity(Op op, DType dtype);

}  // namespace quern
