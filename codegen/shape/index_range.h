#pragma once

// Which elements a chain of views touches. The proofs behind ShapeTracker::check and index_range.

#include <optional>
#include <span>
#include <vector>

#include "quern/codegen/shape/shapetracker.h"
#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/view.h"

namespace quern {

// The elements that valid positions of the chain touch, over all variables. Never too narrow; exact
// where ShapeTracker::index_range promises it. Precondition: inside the chain valid indices stay in
// their views.
IndexRange range_of(std::span<const View> views, std::span<const VarBounds> vars);

// Whether every valid index of the chain is inside 0 <= index < limit, for all variables; false if
// that is unknown. Same precondition.
bool is_inside(std::span<const View> views, const SInt& limit, std::span<const VarBounds> vars);

// Bounds of the variables without values for which no position can be valid; nothing if there is no
// other value.
std::optional<std::vector<VarBounds>> bounds_where_used(std::span<const View> views,
                                                        std::span<const VarBounds> vars);

}  // namespace quern
