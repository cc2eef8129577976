#include "quern/codegen/shape/view.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "quern/codegen/error.h"

namespace quern {
namespace {

bool has_zero(const Shape& shape) { return std::ranges::find(shape, SInt(0)) != shape.end(); }

bool is_known_empty(const MaskDim& dim) {
  SInt length = dim.end - dim.begin;
  return length.is_constant() && length.constant() <= 0;
}

void check_rank(const char* what, size_t found, size_t expected) {
  if (found != expected)
    raise<AstError>("{} has {} dimensions, expected {} as the shape has", what, found, expected);
}

void check_shape(const Shape& shape) {
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i].is_constant() && shape[i].constant() < 0)
      raise<AstError>("dimension {} of a shape is {}, expected 0 or more", i, shape[i].constant());
}

MaskDim full(const SInt& size) { return {0, size}; }

// Where `part` begins, a mask's bound lies at most at 0, at its end at most at its length.
std::optional<SInt> clamp_into(const SInt& bound, const MaskDim& part,
                               std::span<const VarBounds> vars) {
  std::optional<SInt> low = max_of(bound - part.begin, 0, vars);
  if (!low) return std::nullopt;
  return min_of(*low, part.end - part.begin, vars);
}

template <class Range, class ToString>
std::string join(const Range& range, const ToString& to_string) {
  std::string result = "[";
  for (const auto& item : range) {
    if (result.size() > 1) result += ',';
    result += to_string(item);
  }
  return result + "]";
}

}  // namespace

SInt product(const Shape& shape) {
  if (has_zero(shape)) return 0;
  SInt result = 1;
  for (const SInt& size : shape) result *= size;
  return result;
}

Shape row_major_strides(const Shape& shape) {
  Shape strides(shape.size(), SInt(0));
  if (has_zero(shape)) return strides;
  SInt stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == SInt(1)) continue;
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

View View::make(Shape shape) {
  Shape strides = row_major_strides(shape);
  return make(std::move(shape), std::move(strides), 0);
}

View View::make(Shape shape, Shape strides, SInt offset, Mask mask) {
  check_shape(shape);
  check_rank("a view's strides", strides.size(), shape.size());
  if (!mask.empty()) check_rank("a view's mask", mask.size(), shape.size());

  bool zero_size = has_zero(shape);
  bool full_mask = std::ranges::equal(mask, shape, {}, {}, &full);
  if (zero_size || full_mask) mask.clear();
  bool all_invalid = std::ranges::any_of(mask, is_known_empty);
  if (zero_size || all_invalid) {
    std::ranges::fill(strides, SInt(0));
    offset = 0;
  }
  if (all_invalid) std::ranges::fill(mask, full(0));

  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == SInt(1)) {
      strides[i] = 0;
    } else if (!mask.empty() && mask[i].end - mask[i].begin == SInt(1)) {
      offset += strides[i] * mask[i].begin;
      strides[i] = 0;
    }
  }

  View view;
  view.size_ = product(shape);
  view.contiguous_ = mask.empty() && offset == SInt(0) && strides == row_major_strides(shape);
  view.shape_ = std::move(shape);
  view.strides_ = std::move(strides);
  view.offset_ = std::move(offset);
  view.mask_ = std::move(mask);
  return view;
}

bool View::is_all_invalid() const { return is_masked() && is_known_empty(mask_[0]); }

View View::permute(std::span<const size_t> axes) const {
  check_rank("a permutation", axes.size(), rank());
  std::vector<bool> seen(rank(), false);
  Shape shape;
  Shape strides;
  Mask mask;
  for (size_t axis : axes) {
    if (axis >= rank() || seen[axis])
      raise<AstError>("axis {} of a permutation of {} is out of range or repeated", axis, rank());
    seen[axis] = true;
    shape.push_back(shape_[axis]);
    strides.push_back(strides_[axis]);
    if (is_masked()) mask.push_back(mask_[axis]);
  }
  return make(std::move(shape), std::move(strides), offset_, std::move(mask));
}

View View::expand(const Shape& shape) const {
  check_rank("an expanded shape", shape.size(), rank());
  Mask mask = mask_;
  for (size_t i = 0; i < rank(); ++i) {
    if (shape[i] == shape_[i]) continue;
    if (shape_[i] != SInt(1))
      raise<AstError>("expand of dimension {} from {} to {}, only size 1 expands", i,
                      shape_[i].to_string({}), shape[i].to_string({}));
    // The one position is valid if begin is 0 and end 1; then all of them are.
    if (is_masked()) mask[i] = {mask[i].begin * shape[i], mask[i].end * shape[i]};
  }
  return make(shape, strides_, offset_, std::move(mask));
}

std::optional<View> View::pad(std::span<const PadDim> pads, std::span<const VarBounds> vars) const {
  check_rank("a padding", pads.size(), rank());
  Shape shape;
  Mask mask;
  SInt offset = offset_;
  for (size_t i = 0; i < rank(); ++i) {
    const auto& [before, after] = pads[i];
    if (!proves_le(0, before, vars) || !proves_le(0, after, vars))
      raise<AstError>("dimension {} is padded by ({}, {}), expected 0 or more", i,
                      before.to_string({}), after.to_string({}));
    const MaskDim old = is_masked() ? mask_[i] : full(shape_[i]);
    // A mask that reaches beyond the dimension would let new positions in.
    if (before != SInt(0) && !proves_le(0, old.begin, vars)) return std::nullopt;
    if (after != SInt(0) && !proves_le(old.end, shape_[i], vars)) return std::nullopt;
    shape.push_back(before + shape_[i] + after);
    mask.push_back({old.begin + before, old.end + before});
    offset -= strides_[i] * before;
  }
  return make(std::move(shape), strides_, std::move(offset), std::move(mask));
}

std::optional<View> View::shrink(std::span<const MaskDim> parts,
                                 std::span<const VarBounds> vars) const {
  check_rank("a shrink", parts.size(), rank());
  Shape shape;
  Mask mask;
  SInt offset = offset_;
  for (size_t i = 0; i < rank(); ++i) {
    const auto& [begin, end] = parts[i];
    if (!proves_le(0, begin, vars) || !proves_le(begin, end, vars) ||
        !proves_le(end, shape_[i], vars))
      raise<AstError>("dimension {} of size {} is shrunk to [{}, {})", i, shape_[i].to_string({}),
                      begin.to_string({}), end.to_string({}));
    shape.push_back(end - begin);
    offset += strides_[i] * begin;
    if (!is_masked()) continue;
    std::optional<SInt> mask_begin = clamp_into(mask_[i].begin, parts[i], vars);
    std::optional<SInt> mask_end = clamp_into(mask_[i].end, parts[i], vars);
    if (!mask_begin || !mask_end) return std::nullopt;
    mask.push_back({*mask_begin, *mask_end});
  }
  return make(std::move(shape), strides_, std::move(offset), std::move(mask));
}

std::optional<View> View::stride(std::span<const int64_t> steps,
                                 std::span<const VarBounds> vars) const {
  check_rank("a list of steps", steps.size(), rank());
  Shape shape;
  Shape strides;
  Mask mask;
  SInt offset = offset_;
  for (size_t i = 0; i < rank(); ++i) {
    const int64_t step = steps[i];
    if (step == 0 || step == INT64_MIN) raise<AstError>("dimension {} has step {}", i, step);
    const int64_t distance = step < 0 ? -step : step;
    std::optional<SInt> size = divide_up(shape_[i], distance, vars);
    if (!size)
      raise<AstError>("dimension {} of size {} does not divide by step {} for all variables", i,
                      shape_[i].to_string({}), step);
    shape.push_back(*size);
    strides.push_back(strides_[i] * step);
    if (step < 0) offset += strides_[i] * (shape_[i] - 1);
    if (!is_masked()) continue;
    const auto& [begin, end] = mask_[i];
    std::optional<SInt> first = divide_up(step > 0 ? begin : shape_[i] - end, distance, vars);
    std::optional<SInt> last = divide_up(step > 0 ? end : shape_[i] - begin, distance, vars);
    if (!first || !last) return std::nullopt;
    mask.push_back({*first, *last});
  }
  return make(std::move(shape), std::move(strides), std::move(offset), std::move(mask));
}

uint64_t View::hash() const {
  uint64_t result = hash_mix(rank(), mask_.size());
  for (const SInt& size : shape_) result = hash_mix(result, size.hash());
  for (const SInt& stride : strides_) result = hash_mix(result, stride.hash());
  for (const MaskDim& dim : mask_)
    result = hash_mix(hash_mix(result, dim.begin.hash()), dim.end.hash());
  return hash_mix(result, offset_.hash());
}

std::string View::to_string(std::span<const std::string> names) const {
  auto number = [&](const SInt& x) { return x.to_string(names); };
  auto range = [&](const MaskDim& dim) {
    return fmt::format("[{},{}]", number(dim.begin), number(dim.end));
  };
  return fmt::format("V({}; {}; {}; {})", join(shape_, number), join(strides_, number),
                     number(offset_), is_masked() ? join(mask_, range) : "-");
}

}  // namespace quern
