#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "quern/codegen/shape/shapetracker.h"
#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/unravel.h"
#include "quern/codegen/shape/view.h"

namespace quern {
namespace {

using AxisSet = std::vector<bool>;

// What is known of the index on its way from the last view to the first, over valid coordinates of
// the last, counted from the first valid one.
struct Walk {
  std::vector<SInt> extents;
  Affine index;       // the part that is affine
  AxisSet nonlinear;  // the axes that the index depends on in another way
  AxisSet masked;     // the axes that validity depends on
};

void add_axes(AxisSet& set, const Affine& x, std::span<const SInt> extents) {
  for (size_t d = 0; d < x.coefs.size(); ++d)
    if (x.coefs[d] != SInt(0) && extents[d] != SInt(1)) set[d] = true;
}

void add_scaled(Affine& sum, const Affine& x, const SInt& factor) {
  sum.offset += x.offset * factor;
  for (size_t d = 0; d < x.coefs.size(); ++d) sum.coefs[d] += x.coefs[d] * factor;
}

bool is_dim_masked(const View& view, size_t i) {
  return view.is_masked() && view.mask()[i] != MaskDim{0, view.shape()[i]};
}

// The stride of dimensions [first, last) read as one row-major number, if they have one.
std::optional<SInt> common_stride(const View& view, size_t first, size_t last) {
  std::optional<SInt> stride;  // of the innermost dimension
  SInt next = 0;               // that dimension i must have
  for (size_t i = last; i-- > first;) {
    if (view.shape()[i] == SInt(1)) continue;
    if (!stride) stride = next = view.strides()[i];
    if (view.strides()[i] != next) return std::nullopt;
    next *= view.shape()[i];
  }
  return stride ? *stride : SInt(0);
}

bool is_always_valid(const Affine& x, const MaskDim& valid, std::span<const SInt> extents,
                     std::span<const VarBounds> vars) {
  Affine from_begin = x;
  from_begin.offset -= valid.begin;
  Affine from_end = x;
  from_end.offset -= valid.end;
  return bounds_of(from_begin, extents, vars).min >= 0 &&
         bounds_of(from_end, extents, vars).max < 0;
}

Walk start(const View& view) {
  const size_t rank = view.rank();
  Walk walk{view.shape(), {view.offset(), view.strides()}, AxisSet(rank), AxisSet(rank)};
  for (size_t d = 0; d < rank; ++d) {
    if (!is_dim_masked(view, d)) continue;
    walk.masked[d] = true;
    walk.extents[d] = view.mask()[d].end - view.mask()[d].begin;
    walk.index.offset += view.strides()[d] * view.mask()[d].begin;
  }
  return walk;
}

// The index is not affine: its coordinates in the view are not told apart.
void step_nonlinear(Walk& walk, const View& view) {
  AxisSet axes = walk.nonlinear;
  add_axes(axes, walk.index, walk.extents);
  for (size_t i = 0; i < view.rank(); ++i) {
    if (!is_dim_masked(view, i)) continue;
    for (size_t d = 0; d < axes.size(); ++d) walk.masked[d] = walk.masked[d] || axes[d];
  }
  Affine next{view.offset(), std::vector<SInt>(axes.size(), SInt(0))};
  if (std::optional<SInt> stride = common_stride(view, 0, view.rank())) {
    add_scaled(next, walk.index, *stride);
    if (*stride == SInt(0)) walk.nonlinear.assign(axes.size(), false);
  } else {
    walk.nonlinear = std::move(axes);
  }
  walk.index = std::move(next);
}

void step_digit(Walk& walk, const View& view, const Digit& digit, Affine& next,
                std::span<const VarBounds> vars) {
  for (size_t i = digit.first; i < digit.last; ++i) {
    if (!is_dim_masked(view, i)) continue;
    bool alone = digit.last - digit.first == 1;
    if (!alone || !is_always_valid(digit.value, view.mask()[i], walk.extents, vars))
      add_axes(walk.masked, digit.value, walk.extents);
  }
  if (std::optional<SInt> stride = common_stride(view, digit.first, digit.last)) {
    add_scaled(next, digit.value, *stride);
  } else {
    add_axes(walk.nonlinear, digit.value, walk.extents);
  }
}

void step(Walk& walk, const View& view, std::span<const VarBounds> vars) {
  if (std::ranges::find(walk.nonlinear, true) != walk.nonlinear.end())
    return step_nonlinear(walk, view);
  Affine next{view.offset(), std::vector<SInt>(walk.extents.size(), SInt(0))};
  for (const Digit& digit : unravel(walk.index, view.shape(), walk.extents, vars))
    step_digit(walk, view, digit, next, vars);
  walk.index = std::move(next);
}

Walk walk_views(std::span<const View> views, std::span<const VarBounds> vars) {
  Walk walk = start(views.back());
  for (size_t k = views.size() - 1; k-- > 0;) step(walk, views[k], vars);
  return walk;
}

}  // namespace

std::vector<std::optional<SInt>> ShapeTracker::real_strides(bool ignore_valid,
                                                            std::span<const VarBounds> vars) const {
  Walk walk = walk_views(views_, vars);
  std::vector<std::optional<SInt>> strides(rank());
  for (size_t d = 0; d < rank(); ++d)
    if (!walk.nonlinear[d] && (ignore_valid || !walk.masked[d])) strides[d] = walk.index.coefs[d];
  return strides;
}

bool ShapeTracker::axis_is_masked(size_t axis, std::span<const VarBounds> vars) const {
  return walk_views(views_, vars).masked.at(axis);
}

}  // namespace quern
