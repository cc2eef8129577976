#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "quern/codegen/error.h"
#include "quern/codegen/shape/index_range.h"
#include "quern/codegen/shape/interval.h"
#include "quern/codegen/shape/shapetracker.h"
#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/view.h"

namespace quern {
namespace {

// For messages.
std::string name(std::span<const View> views, size_t k) {
  return fmt::format("view {} of {}, {}", k, views.size(), views[k].to_string());
}

bool is_finite(VarBounds x) { return x.min != kMinusInfinity && x.max != kPlusInfinity; }

void check_shape(std::span<const View> views, size_t k, std::span<const VarBounds> vars) {
  const View& view = views[k];
  VarBounds size{1, 1};
  for (size_t i = 0; i < view.rank(); ++i) {
    VarBounds dim = view.shape()[i].bounds(vars);
    if (dim.min < 0)
      raise<AstError>("{}: dimension {} can be {}, expected 0 or more", name(views, k), i, dim.min);
    size = multiply_intervals(size, dim);
  }
  if (view.size() != SInt(0) && !is_finite(size))
    raise<AstError>("{}: its size overflows int64", name(views, k));
}

// A symbolic mask may leave its dimension for some values, as recorded kernels do, but not for all.
void check_mask(std::span<const View> views, size_t k, std::span<const VarBounds> vars) {
  const View& view = views[k];
  for (size_t i = 0; i < view.mask().size(); ++i) {
    const auto& [begin, end] = view.mask()[i];
    if (begin.bounds(vars).max < 0 || (view.shape()[i] - end).bounds(vars).max < 0)
      raise<AstError>("{}: the mask of dimension {} lies outside of the dimension", name(views, k),
                      i);
  }
}

// At any position, valid or not: lowered code computes the index before it knows.
void check_index_fits(std::span<const View> views, size_t k, std::span<const VarBounds> vars) {
  const View& view = views[k];
  VarBounds index = view.offset().bounds(vars);
  for (size_t i = 0; i < view.rank(); ++i) {
    VarBounds last = add_intervals(view.shape()[i].bounds(vars), {-1, -1});
    if (last.max < 0) continue;
    index = add_intervals(index, multiply_intervals(view.strides()[i].bounds(vars), {0, last.max}));
  }
  if (!is_finite(index)) raise<AstError>("{}: its index overflows int64", name(views, k));
}

std::string text(const IndexRange& range) { return fmt::format("{} to {}", range.min, range.max); }

}  // namespace

IndexRange ShapeTracker::index_range(std::span<const VarBounds> vars) const {
  return range_of(views_, vars);
}

int64_t ShapeTracker::buffer_size(std::span<const VarBounds> vars) const {
  IndexRange range = index_range(vars);
  return range.empty ? 0 : range.max + 1;
}

void ShapeTracker::check(std::optional<int64_t> buffer_size,
                         std::span<const VarBounds> vars) const {
  for (size_t k = 0; k < views_.size(); ++k) {
    check_shape(views_, k, vars);
    check_mask(views_, k, vars);
    check_index_fits(views_, k, vars);
  }
  // From the last one on, as what a view must hold depends on the views behind it.
  for (size_t k = views_.size(); k-- > 0;) {
    std::span<const View> views(views_.begin() + static_cast<ptrdiff_t>(k), views_.end());
    if (k > 0 && !is_inside(views, views_[k - 1].size(), vars))
      raise<AstError>("{}: valid positions index elements {}, but the view before has {}",
                      name(views_, k), text(range_of(views, vars)),
                      views_[k - 1].size().to_string({}));
    if (k == 0 && buffer_size && !is_inside(views, *buffer_size, vars))
      raise<AstError>("{}: valid positions index elements {}, but the buffer has {}",
                      name(views_, k), text(range_of(views, vars)), *buffer_size);
  }
}

}  // namespace quern
