#include "quern/codegen/shape/index_range.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "quern/codegen/shape/interval.h"
#include "quern/codegen/shape/unravel.h"

namespace quern {
namespace {

// Index computations that may be spent where nothing is proven.
constexpr int64_t kMaxTrials = int64_t{1} << 20;  // positions
constexpr int64_t kMaxValues = int64_t{1} << 12;  // of all variables together
constexpr IndexRange kNothing{0, -1, true};

bool is_empty(VarBounds x) { return x.min > x.max; }

MaskDim valid_part(const View& view, size_t i) {
  return view.is_masked() ? view.mask()[i] : MaskDim{0, view.shape()[i]};
}

// The valid coordinates of a view, and its index from the first of them on.
struct ValidIndex {
  std::vector<SInt> extents;
  Affine index;
};

// Takes the mask's ends or, if by_shape, the dimension's where the mask may reach beyond: either
// box holds all valid coordinates.
ValidIndex valid_index(const View& view, bool by_shape, std::span<const VarBounds> vars) {
  ValidIndex result{{}, {view.offset(), view.strides()}};
  for (size_t i = 0; i < view.rank(); ++i) {
    MaskDim part = valid_part(view, i);
    if (by_shape && !proves_le(0, part.begin, vars)) part.begin = 0;
    if (by_shape && !proves_le(part.end, view.shape()[i], vars)) part.end = view.shape()[i];
    result.extents.push_back(part.end - part.begin);
    result.index.offset += view.strides()[i] * part.begin;
  }
  return result;
}

// The range of index - limit.
VarBounds index_bounds(const View& view, const SInt& limit, std::span<const VarBounds> vars) {
  VarBounds range{kMinusInfinity, kPlusInfinity};
  for (bool by_shape : {false, true}) {
    ValidIndex valid = valid_index(view, by_shape, vars);
    valid.index.offset -= limit;
    VarBounds found = bounds_of(valid.index, valid.extents, vars);
    range = {std::max(range.min, found.min), std::min(range.max, found.max)};
  }
  return range;
}

// Narrows the bounds of the one variable that `x` has, if it has one, to where x >= 1. False if x
// is less everywhere.
bool require_positive(const SInt& x, std::vector<VarBounds>& vars) {
  if (x.bounds(vars).max < 1) return false;
  if (x.is_constant() || x.terms()[0].vars.size() != 1) return true;
  const SInt::Term& term = x.terms()[0];
  const SInt rest = x - SInt::from_terms({term});
  const uint32_t var = term.vars[0];
  if (!rest.is_constant() || var >= vars.size() || term.coef == INT64_MIN) return true;
  // term.coef * var >= 1 - rest
  SIntDivision bound =
      divide(term.coef > 0 ? SInt(1) - rest : rest - 1, term.coef > 0 ? term.coef : -term.coef);
  const int64_t floor = bound.quotient.constant();
  if (term.coef < 0) {
    vars[var].max = std::min(vars[var].max, floor);
  } else {
    vars[var].min = std::max(vars[var].min, bound.remainder == SInt(0) ? floor : floor + 1);
  }
  return !is_empty(vars[var]);
}

std::vector<View> merge_all(std::span<const View> views, std::span<const VarBounds> vars) {
  return ShapeTracker({views.begin(), views.end()}).simplify(vars).views();
}

// The coordinates of the row-major numbers `index` in a shape, as ranges.
std::vector<VarBounds> unravel_range(VarBounds index, const Shape& shape,
                                     std::span<const VarBounds> vars) {
  index.min = std::max<int64_t>(index.min, 0);
  std::vector<VarBounds> ranges;
  for (const SInt& size : shape) ranges.push_back({0, size.bounds(vars).max - 1});
  int64_t row = 1;
  for (size_t i = shape.size(); i-- > 0; row *= shape[i].constant()) {
    if (!shape[i].is_constant() || shape[i].constant() <= 0) return ranges;
    // The same row throughout, or the outermost: the coordinate does not wrap.
    int64_t first = index.min / row;
    int64_t last = index.max / row;
    int64_t size = shape[i].constant();
    if (first / size == last / size) ranges[i] = {first % size, last % size};
  }
  return ranges;
}

// The range of the first view's index, step by step from the last view's. Forgets how coordinates
// depend on each other.
VarBounds walk_range(std::span<const View> views, std::span<const VarBounds> vars) {
  VarBounds range = index_bounds(views.back(), 0, vars);
  for (size_t k = views.size() - 1; k-- > 0;) {
    const View& view = views[k];
    const std::vector<VarBounds> coords = unravel_range(range, view.shape(), vars);
    range = view.offset().bounds(vars);
    for (size_t i = 0; i < view.rank(); ++i) {
      MaskDim part = valid_part(view, i);
      VarBounds at{std::max(coords[i].min, part.begin.bounds(vars).min),
                   std::min(coords[i].max, part.end.bounds(vars).max - 1)};
      if (is_empty(at)) return {0, -1};
      range = add_intervals(range, multiply_intervals(view.strides()[i].bounds(vars), at));
    }
  }
  return range;
}

// Counts up within the ranges, last place first; false after the last.
bool next_point(std::vector<int64_t>& at, std::span<const VarBounds> ranges) {
  for (size_t i = at.size(); i-- > 0;) {
    if (at[i]++ < ranges[i].max) return true;
    at[i] = ranges[i].min;
  }
  return false;
}

std::vector<int64_t> first_of(std::span<const VarBounds> ranges) {
  std::vector<int64_t> at;
  for (VarBounds range : ranges) at.push_back(range.min);
  return at;
}

// The number of points, or kMaxTrials + 1 if it is greater.
int64_t count(std::span<const VarBounds> ranges) {
  int64_t total = 1;
  for (VarBounds range : ranges) {
    int64_t steps;
    if (is_empty(range)) return 0;
    if (__builtin_sub_overflow(range.max, range.min, &steps) || steps > kMaxTrials)
      return kMaxTrials + 1;
    total = std::min(total * (steps + 1), kMaxTrials + 1);
  }
  return total;
}

// Tries every valid position of the last view. The chain has no variables. Nothing if it is too
// large.
std::optional<IndexRange> try_positions(std::span<const View> views) {
  std::vector<VarBounds> ranges;
  for (size_t i = 0; i < views.back().rank(); ++i) {
    MaskDim part = valid_part(views.back(), i);
    ranges.push_back({part.begin.constant(), part.end.constant() - 1});
  }
  const int64_t positions = count(ranges);
  if (positions > kMaxTrials) return std::nullopt;
  IndexRange found = kNothing;
  if (positions == 0) return found;
  const ShapeTracker tracker({views.begin(), views.end()});
  std::vector<int64_t> coords = first_of(ranges);
  do {
    IndexValue at = tracker.expr_index(coords);
    if (!at.valid) continue;
    if (found.empty) found = {at.index, at.index, false};
    found.min = std::min(found.min, at.index);
    found.max = std::max(found.max, at.index);
  } while (next_point(coords, ranges));
  return found;
}

void for_each_number(std::span<const View> views, const std::function<void(const SInt&)>& visit) {
  for (const View& view : views) {
    for (const SInt& size : view.shape()) visit(size);
    for (const SInt& stride : view.strides()) visit(stride);
    for (const MaskDim& dim : view.mask()) {
      visit(dim.begin);
      visit(dim.end);
    }
    visit(view.offset());
  }
}

bool is_symbolic(std::span<const View> views) {
  bool found = false;
  for_each_number(views, [&](const SInt& x) { found = found || !x.is_constant(); });
  return found;
}

std::vector<View> at_values(std::span<const View> views, std::span<const int64_t> values) {
  std::vector<View> result;
  auto eval = [&](const SInt& x) { return SInt(x.eval(values)); };
  for (const View& view : views) {
    Shape shape;
    Shape strides;
    Mask mask;
    for (const SInt& size : view.shape()) shape.push_back(eval(size));
    for (const SInt& stride : view.strides()) strides.push_back(eval(stride));
    for (size_t i = 0; i < view.mask().size(); ++i)
      mask.push_back({std::max(eval(view.mask()[i].begin), SInt(0)),
                      std::min(eval(view.mask()[i].end), shape[i])});
    result.push_back(
        View::make(std::move(shape), std::move(strides), eval(view.offset()), std::move(mask)));
  }
  return result;
}

// Sets the bounds of variables that the chain does not have to a single value.
std::vector<VarBounds> used_ranges(std::span<const View> views, std::span<const VarBounds> vars) {
  std::vector<VarBounds> ranges;
  for (VarBounds range : vars) ranges.push_back({range.min, range.min});
  for_each_number(views, [&](const SInt& x) {
    for (const SInt::Term& term : x.terms())
      for (uint32_t var : term.vars) ranges.at(var) = vars[var];
  });
  return ranges;
}

bool proves_inside(std::span<const View> views, const SInt& limit,
                   std::span<const VarBounds> vars) {
  if (views.size() > 1) {
    VarBounds range = walk_range(views, vars);
    return is_empty(range) || (range.min >= 0 && range.max < limit.bounds(vars).min);
  }
  return index_bounds(views[0], 0, vars).min >= 0 && index_bounds(views[0], limit, vars).max < 0;
}

// Of a chain without variables.
bool is_inside_numbers(std::span<const View> views, int64_t limit) {
  if (!bounds_where_used(views, {})) return true;
  const std::vector<View> merged = merge_all(views, {});
  if (!bounds_where_used(merged, {}) || proves_inside(merged, limit, {})) return true;
  if (merged.size() == 1) return false;  // the range was exact
  std::optional<IndexRange> range = try_positions(merged);
  return range && (range->empty || (range->min >= 0 && range->max < limit));
}

// A variable may matter to whether a position exists, yet no position may need all its values.
bool is_inside_everywhere(std::span<const View> views, const SInt& limit,
                          std::span<const VarBounds> vars) {
  const std::vector<VarBounds> ranges = used_ranges(views, vars);
  if (count(ranges) > kMaxValues) return false;
  std::vector<int64_t> values = first_of(ranges);
  do {
    if (!is_inside_numbers(at_values(views, values), limit.eval(values))) return false;
  } while (next_point(values, ranges));
  return true;
}

}  // namespace

std::optional<std::vector<VarBounds>> bounds_where_used(std::span<const View> views,
                                                        std::span<const VarBounds> vars) {
  std::vector<VarBounds> bounds(vars.begin(), vars.end());
  for (const View& view : views)
    for (size_t i = 0; i < view.rank(); ++i) {
      MaskDim part = valid_part(view, i);
      if (!require_positive(part.end - part.begin, bounds)) return std::nullopt;
    }
  return bounds;
}

IndexRange range_of(std::span<const View> views, std::span<const VarBounds> vars) {
  std::optional<std::vector<VarBounds>> used = bounds_where_used(views, vars);
  if (!used) return kNothing;
  const std::vector<View> merged = merge_all(views, *used);
  if (merged.size() > 1 && !is_symbolic(merged))
    if (std::optional<IndexRange> range = try_positions(merged)) return *range;
  std::optional<std::vector<VarBounds>> left = bounds_where_used(merged, *used);
  if (!left) return kNothing;
  VarBounds range = walk_range(merged, *left);
  return is_empty(range) ? kNothing : IndexRange{range.min, range.max, false};
}

bool is_inside(std::span<const View> views, const SInt& limit, std::span<const VarBounds> vars) {
  if (!is_symbolic(views) && limit.is_constant()) return is_inside_numbers(views, limit.constant());
  std::optional<std::vector<VarBounds>> used = bounds_where_used(views, vars);
  if (!used) return true;
  const std::vector<View> merged = merge_all(views, *used);
  used = bounds_where_used(merged, *used);
  return !used || proves_inside(merged, limit, *used) || is_inside_everywhere(views, limit, *used);
}

}  // namespace quern
