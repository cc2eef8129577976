#pragma once

// ShapeTracker: how the positions of a tensor read a buffer, as a chain of Views.
//
// Coordinates index the last view; its index is unraveled, row-major, through the shape of the view
// before it, and so on; the first view's index is the element of the buffer. A position is valid if
// every view's mask says so. Movement ops change the last view, and add one where no single View
// does what is asked for. ShapeTrackers are immutable values.
//
// `vars` are the bounds of the kernel's variables (see view.h); a tracker without symbols needs
// none.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/view.h"

namespace quern {

// Elements that are touched: min to max, both included; nothing at all if empty.
struct IndexRange {
  int64_t min = 0;
  int64_t max = 0;
  bool empty = false;
  bool operator==(const IndexRange&) const = default;
};

// The element of one position. 0 where it is not valid.
struct IndexValue {
  int64_t index = 0;
  bool valid = false;
  bool operator==(const IndexValue&) const = default;
};

class QUERN_API ShapeTracker {
 public:
  // Row-major over a whole buffer.
  static ShapeTracker make(Shape shape);
  // First to last; at least one.
  explicit ShapeTracker(std::vector<View> views);

  const std::vector<View>& views() const { return views_; }
  const Shape& shape() const { return views_.back().shape(); }
  size_t rank() const { return shape().size(); }
  // The number of positions, valid or not.
  SInt size() const { return views_.back().size(); }
  bool is_contiguous() const { return views_.size() == 1 && views_[0].is_contiguous(); }

  // Movement ops; what they do and refuse is said in view.h.
  ShapeTracker permute(std::span<const size_t> axes) const;
  ShapeTracker expand(const Shape& shape) const;
  ShapeTracker pad(std::span<const PadDim> pads, std::span<const VarBounds> vars = {}) const;
  ShapeTracker shrink(std::span<const MaskDim> parts, std::span<const VarBounds> vars = {}) const;
  ShapeTracker stride(std::span<const int64_t> steps, std::span<const VarBounds> vars = {}) const;
  ShapeTracker reshape(const Shape& shape, std::span<const VarBounds> vars = {}) const;

  // The same positions with fewer views, where neighbours merge. Precondition: check() passes.
  ShapeTracker simplify(std::span<const VarBounds> vars = {}) const;

  // By how many elements a step along each axis moves the index, if that is the same everywhere. An
  // axis that a mask depends on gives nothing, unless ignore_valid: then the stride at valid
  // positions.
  std::vector<std::optional<SInt>> real_strides(bool ignore_valid = false,
                                                std::span<const VarBounds> vars = {}) const;
  // Whether validity depends on the axis, as far as can be told.
  bool axis_is_masked(size_t axis, std::span<const VarBounds> vars = {}) const;

  // The elements that valid positions touch, over all variables. Never too narrow. Exact for one
  // view (for which signs and bounds are, see SInt::bounds) and for a chain that merges to one.
  // Precondition: check({}, vars) passes.
  IndexRange index_range(std::span<const VarBounds> vars = {}) const;
  // The smallest buffer that holds index_range().
  int64_t buffer_size(std::span<const VarBounds> vars = {}) const;

  // Throws AstError that says what is wrong where: a dimension that can be negative, a mask that
  // leaves its dimension for all variables, an index that can overflow int64 (at any position), a
  // valid index that can leave the view before it, or the buffer of `buffer_size` elements if that
  // is given. What cannot be proven from the bounds of the variables is tried value by value where
  // that is at most about a million index computations; else it is an error.
  void check(std::optional<int64_t> buffer_size, std::span<const VarBounds> vars = {}) const;

  // The element at one position, by arithmetic; values[i] is variable i's. Total: never overflows
  // or divides by 0.
  IndexValue expr_index(std::span<const int64_t> coords,
                        std::span<const int64_t> values = {}) const;

  bool operator==(const ShapeTracker&) const = default;
  uint64_t hash() const;
  std::string to_string(std::span<const std::string> names = {}) const;

 private:
  ShapeTracker with_last(View view) const;   // in place of the last view
  ShapeTracker with_added(View view) const;  // behind it

  std::vector<View> views_;
};

}  // namespace quern
