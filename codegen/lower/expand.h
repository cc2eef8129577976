#pragma once

#include "quern/codegen/simplify/simplify.h"
#include "quern/codegen/target.h"

namespace quern {

// Turns LANEs (positions along upcast and unrolled axes) into vector lanes.
//
// A value that depends on some LANEs becomes one vector with a lane for each combination of their
// positions; the axes' order, the same for all values, has the axis last (fastest) along which most
// accesses are contiguous. Where operands depend on different axes, GEP and VECTORIZE repeat lanes.
// Addresses stay scalar: an access of many lanes is cut into loads and stores of consecutive
// elements, as wide as the target takes, each with a scalar index.
// A REDUCE also sums the lanes of the axes that its args name: along the fastest axis after the
// loop, where that keeps the loop's accumulator one vector, else inside it.
UOp expand(Simplifier& s, UOp sink, const Target& target);

}  // namespace quern
