// View::merge. The outer view's index is an affine function of its valid coordinates. It is
// unraveled to the inner view's coordinates; if these are affine functions as well, so is the inner
// index. Then the inner mask must become a mask of the outer coordinates.

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/unravel.h"
#include "quern/codegen/shape/view.h"

namespace quern {
namespace {

// The outer coordinates that may still be valid: begins[d] <= c[d] < begins[d] + extents[d].
struct Box {
  std::vector<SInt> begins;
  std::vector<SInt> extents;
};

Box valid_box(const View& view) {
  Box box;
  for (size_t i = 0; i < view.rank(); ++i) {
    box.begins.push_back(view.is_masked() ? view.mask()[i].begin : SInt(0));
    box.extents.push_back(view.is_masked() ? view.mask()[i].end - view.mask()[i].begin
                                           : view.shape()[i]);
  }
  return box;
}

Affine index_in_box(const View& view, const Box& box) {
  Affine index{view.offset(), view.strides()};
  for (size_t d = 0; d < view.rank(); ++d) index.offset += view.strides()[d] * box.begins[d];
  return index;
}

enum class Projection { kAlways, kNever, kNarrowed, kUnknown };

// The c of 0 <= c < extent where begin <= offset + coef * c < end.
std::optional<MaskDim> solve(const SInt& offset, const SInt& coef, const MaskDim& valid,
                             const SInt& extent, std::span<const VarBounds> vars) {
  if (!coef.is_constant() || coef == SInt(0) || coef == SInt(INT64_MIN)) return std::nullopt;
  const int64_t step = coef.constant();
  std::optional<SInt> begin;
  std::optional<SInt> end;
  if (step > 0) {
    begin = divide_up(valid.begin - offset, step, vars);
    end = divide_up(valid.end - offset, step, vars);
  } else {
    begin = divide_up(offset - valid.end + 1, -step, vars);
    end = divide_up(offset - valid.begin + 1, -step, vars);
  }
  if (begin) begin = max_of(*begin, 0, vars);
  if (end) end = min_of(*end, extent, vars);
  if (!begin || !end) return std::nullopt;
  return MaskDim{*begin, *end};
}

// Takes from the box what `valid` excludes, and moves the origin of the coordinates to the box's.
Projection project(const Affine& x, const MaskDim& valid, std::vector<Digit>& digits, Box& box,
                   std::span<const VarBounds> vars) {
  Affine from_begin = x;
  from_begin.offset -= valid.begin;
  Affine from_end = x;
  from_end.offset -= valid.end;
  VarBounds above = bounds_of(from_begin, box.extents, vars);
  VarBounds below = bounds_of(from_end, box.extents, vars);
  if (above.min >= 0 && below.max < 0) return Projection::kAlways;
  if (above.max < 0 || below.min >= 0) return Projection::kNever;

  std::optional<size_t> only;
  for (size_t d = 0; d < x.coefs.size(); ++d) {
    if (x.coefs[d] == SInt(0) || box.extents[d] == SInt(1)) continue;
    if (only) return Projection::kUnknown;
    only = d;
  }
  if (!only) return Projection::kUnknown;
  std::optional<MaskDim> part = solve(x.offset, x.coefs[*only], valid, box.extents[*only], vars);
  if (!part) return Projection::kUnknown;
  if (*part == MaskDim{0, box.extents[*only]}) return Projection::kAlways;
  SInt extent = part->end - part->begin;
  if (extent.is_constant() && extent.constant() <= 0) return Projection::kNever;
  box.begins[*only] += part->begin;
  box.extents[*only] = std::move(extent);
  for (Digit& digit : digits) digit.value.offset += digit.value.coefs[*only] * part->begin;
  return Projection::kNarrowed;
}

// A narrower box may decide what was unknown, so it goes on while anything changes: at most once a
// dimension, since a solved constraint holds ever after.
Projection project_all(const View& inner, std::vector<Digit>& digits, Box& box,
                       std::span<const VarBounds> vars) {
  std::vector<bool> done(digits.size(), !inner.is_masked());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t k = 0; k < digits.size(); ++k) {
      if (done[k]) continue;
      const Affine value = digits[k].value;
      Projection result = project(value, inner.mask()[k], digits, box, vars);
      if (result == Projection::kNever) return result;
      done[k] = result != Projection::kUnknown;
      changed = changed || done[k];
    }
  }
  for (bool d : done)
    if (!d) return Projection::kUnknown;
  return Projection::kAlways;
}

std::optional<View> all_invalid(const Shape& shape) {
  if (shape.empty()) return std::nullopt;
  return View::make(shape, Shape(shape.size(), SInt(0)), 0, Mask(shape.size(), MaskDim{0, 0}));
}

}  // namespace

std::optional<View> View::merge(const View& inner, const View& outer,
                                std::span<const VarBounds> vars) {
  if (inner.is_contiguous() || outer.is_all_invalid()) return outer;
  if (outer.size() == SInt(0)) return make(outer.shape());
  if (inner.is_all_invalid()) return all_invalid(outer.shape());
  if (outer.is_contiguous() && outer.size() == inner.size()) {
    if (std::optional<View> result = inner.reshape(outer.shape(), vars)) return result;
  }

  Box box = valid_box(outer);
  std::vector<Digit> digits = unravel(index_in_box(outer, box), inner.shape(), box.extents, vars);
  Shape merged;
  for (const Digit& digit : digits) merged.push_back(digit.size);
  std::optional<View> source = inner.reshape(merged, vars);
  if (!source) return std::nullopt;

  Projection projection = project_all(*source, digits, box, vars);
  if (projection == Projection::kNever) return all_invalid(outer.shape());
  if (projection == Projection::kUnknown) return std::nullopt;

  SInt offset = source->offset();
  Shape strides(outer.rank(), SInt(0));
  Mask mask;
  for (size_t k = 0; k < digits.size(); ++k) {
    offset += digits[k].value.offset * source->strides()[k];
    for (size_t d = 0; d < outer.rank(); ++d)
      strides[d] += digits[k].value.coefs[d] * source->strides()[k];
  }
  for (size_t d = 0; d < outer.rank(); ++d) {
    offset -= strides[d] * box.begins[d];
    mask.push_back({box.begins[d], box.begins[d] + box.extents[d]});
  }
  return make(outer.shape(), std::move(strides), std::move(offset), std::move(mask));
}

}  // namespace quern
