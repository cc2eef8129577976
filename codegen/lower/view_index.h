#pragma once

#include <span>

#include "quern/codegen/shape/shapetracker.h"
#include "quern/codegen/simplify/simplify.h"

namespace quern {

// The Index value of a symbolic integer; vars are the kernel's DEFINE_VARs in order.
UOp to_uop(Simplifier& s, const SInt& value, std::span<const UOp> vars);

struct ElementIndex {
  UOp index;  // Index type; any value where not valid
  UOp valid;  // bool, or null if always valid
};

// Which element a tracker shows at a position, and whether it shows one: a chain of views from the
// last, which has the axes of `coords`, to the first, whose index is that of the buffer's element.
ElementIndex element_index(Simplifier& s, const ShapeTracker& tracker, std::span<const UOp> coords,
                           std::span<const UOp> vars);

}  // namespace quern
