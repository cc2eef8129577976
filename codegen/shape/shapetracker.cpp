#include "quern/codegen/shape/shapetracker.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "quern/codegen/error.h"

namespace quern {
namespace {

// Masked-off positions may have any index, so the arithmetic must not trap on overflow.
int64_t wrapping_add_product(int64_t sum, int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(sum) +
                              static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

std::vector<int64_t> eval_all(const std::vector<SInt>& numbers, std::span<const int64_t> values) {
  std::vector<int64_t> result;
  for (const SInt& number : numbers) result.push_back(number.eval(values));
  return result;
}

// Row-major coordinates of index in shape; nothing if it is outside.
std::optional<std::vector<int64_t>> unravel_number(int64_t index,
                                                   const std::vector<int64_t>& shape) {
  std::vector<int64_t> coords(shape.size());
  if (index < 0) return std::nullopt;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] <= 0) return std::nullopt;
    coords[i] = index % shape[i];
    index /= shape[i];
  }
  if (index != 0) return std::nullopt;
  return coords;
}

bool is_valid(const View& view, std::span<const int64_t> coords, std::span<const int64_t> values) {
  for (size_t i = 0; i < view.mask().size(); ++i)
    if (coords[i] < view.mask()[i].begin.eval(values) ||
        coords[i] >= view.mask()[i].end.eval(values))
      return false;
  return true;
}

}  // namespace

ShapeTracker ShapeTracker::make(Shape shape) {
  return ShapeTracker({View::make(std::move(shape))});
}

ShapeTracker::ShapeTracker(std::vector<View> views) : views_(std::move(views)) {
  if (views_.empty()) raise<AstError>("a ShapeTracker has no views, expected at least one");
}

ShapeTracker ShapeTracker::with_last(View view) const {
  std::vector<View> views(views_.begin(), views_.end() - 1);
  views.push_back(std::move(view));
  return ShapeTracker(std::move(views));
}

ShapeTracker ShapeTracker::with_added(View view) const {
  std::vector<View> views = views_;
  views.push_back(std::move(view));
  return ShapeTracker(std::move(views));
}

ShapeTracker ShapeTracker::permute(std::span<const size_t> axes) const {
  return with_last(views_.back().permute(axes));
}

ShapeTracker ShapeTracker::expand(const Shape& shape) const {
  return with_last(views_.back().expand(shape));
}

ShapeTracker ShapeTracker::pad(std::span<const PadDim> pads,
                               std::span<const VarBounds> vars) const {
  if (std::optional<View> view = views_.back().pad(pads, vars)) return with_last(*std::move(view));
  return with_added(View::make(shape()).pad(pads, vars).value());  // no mask in the way
}

ShapeTracker ShapeTracker::shrink(std::span<const MaskDim> parts,
                                  std::span<const VarBounds> vars) const {
  if (std::optional<View> view = views_.back().shrink(parts, vars))
    return with_last(*std::move(view));
  return with_added(View::make(shape()).shrink(parts, vars).value());  // no mask in the way
}

ShapeTracker ShapeTracker::stride(std::span<const int64_t> steps,
                                  std::span<const VarBounds> vars) const {
  if (std::optional<View> view = views_.back().stride(steps, vars))
    return with_last(*std::move(view));
  return with_added(View::make(shape()).stride(steps, vars).value());  // no mask in the way
}

ShapeTracker ShapeTracker::reshape(const Shape& shape, std::span<const VarBounds> vars) const {
  if (std::optional<View> view = views_.back().reshape(shape, vars))
    return with_last(*std::move(view));
  return with_added(View::make(shape));
}

ShapeTracker ShapeTracker::simplify(std::span<const VarBounds> vars) const {
  std::vector<View> views;
  for (const View& next : views_) {
    views.push_back(next);
    while (views.size() > 1) {
      std::optional<View> merged = View::merge(views[views.size() - 2], views.back(), vars);
      if (!merged) break;
      views.pop_back();
      views.back() = *std::move(merged);
    }
  }
  return ShapeTracker(std::move(views));
}

IndexValue ShapeTracker::expr_index(std::span<const int64_t> coords,
                                    std::span<const int64_t> values) const {
  if (coords.size() != rank())
    raise<AstError>("a position has {} coordinates, expected {}", coords.size(), rank());
  std::vector<int64_t> at(coords.begin(), coords.end());
  for (size_t k = views_.size(); k-- > 0;) {
    const View& view = views_[k];
    if (!is_valid(view, at, values)) return {};
    int64_t index = view.offset().eval(values);
    for (size_t i = 0; i < view.rank(); ++i)
      index = wrapping_add_product(index, at[i], view.strides()[i].eval(values));
    if (k == 0) return {index, true};
    std::optional<std::vector<int64_t>> inner =
        unravel_number(index, eval_all(views_[k - 1].shape(), values));
    if (!inner) return {};
    at = *std::move(inner);
  }
  return {};
}

uint64_t ShapeTracker::hash() const {
  uint64_t result = views_.size();
  for (const View& view : views_) result = hash_mix(result, view.hash());
  return result;
}

std::string ShapeTracker::to_string(std::span<const std::string> names) const {
  std::string result;
  for (const View& view : views_) {
    if (!result.empty()) result += ", ";
    result += view.to_string(names);
  }
  return result;
}

}  // namespace quern
