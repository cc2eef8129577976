#pragma once

#include <span>

#include "quern/codegen/shape/shapetracker.h"
#include "quern/codegen/shape/sint.h"

namespace quern {

// Throws AstError unless no two valid positions of the tracker are the same element, for all values
// of the variables: two work items would race for it. Strides that nest prove it; where they do
// not, up to a million positions are enumerated, at the variables' greatest values, and what is
// larger is refused.
void check_distinct(const ShapeTracker& tracker, std::span<const VarBounds> vars);

}  // namespace quern
