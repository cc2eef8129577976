// View::reshape. Old and new shape are cut where they have equal suffix products; each pair of
// pieces is one independent problem: merge the old dimensions of the piece to a single run, split
// the run into the new ones. In a piece no inner cut agrees, so if the valid positions of the old
// dimensions are not one run, no mask of the new ones describes them, and there is nothing to find.

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "quern/codegen/error.h"
#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/view.h"

namespace quern {
namespace {

// Row-major positions of several dimensions as one: position p of begin <= p < end is element
// offset + p * stride; the others are invalid.
struct Run {
  SInt size;
  SInt stride;
  SInt offset;
  MaskDim valid;
};

// The dimensions [old_first, old_last) become [new_first, new_last).
struct Piece {
  size_t old_first, old_last;
  size_t new_first, new_last;
};

// The dimensions other than 1.
std::vector<size_t> real_dims(const Shape& shape) {
  std::vector<size_t> dims;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != SInt(1)) dims.push_back(i);
  return dims;
}

Shape pick(const Shape& shape, std::span<const size_t> dims) {
  Shape result;
  for (size_t dim : dims) result.push_back(shape[dim]);
  return result;
}

// result[i] is the product of shape[i..]; the last is 1.
std::vector<SInt> suffix_products(const Shape& shape) {
  std::vector<SInt> products(shape.size() + 1, SInt(1));
  for (size_t i = shape.size(); i-- > 0;) products[i] = products[i + 1] * shape[i];
  return products;
}

// Whole shapes have equal products. Innermost piece first.
std::vector<Piece> cut(const std::vector<SInt>& old_products,
                       const std::vector<SInt>& new_products) {
  std::vector<Piece> pieces;
  size_t old_last = old_products.size() - 1;
  size_t new_last = new_products.size() - 1;
  for (size_t i = old_last; i-- > 0;) {
    for (size_t j = new_last; j-- > 0;) {
      if (old_products[i] != new_products[j]) continue;
      pieces.push_back({i, old_last, j, new_last});
      old_last = i;
      new_last = j;
      break;
    }
  }
  return pieces;
}

// `inner` varies fastest.
std::optional<Run> merge_runs(const Run& outer, const Run& inner, std::span<const VarBounds> vars) {
  const SInt shift = inner.size * inner.stride;  // what a step of outer adds if they are one run
  bool one_row = outer.valid.end - outer.valid.begin == SInt(1);
  bool inner_full = inner.valid == MaskDim{0, inner.size};
  if (!one_row && (!inner_full || outer.stride != shift)) return std::nullopt;
  // What a mask lets in beyond its dimension would be of the next row.
  if (!proves_le(0, inner.valid.begin, vars) || !proves_le(inner.valid.end, inner.size, vars))
    return std::nullopt;
  Run run;
  run.size = outer.size * inner.size;
  run.stride = inner.stride;
  run.offset = outer.offset + inner.offset;
  const SInt first_row = outer.valid.begin * inner.size;
  if (one_row) {
    run.offset += (outer.stride - shift) * outer.valid.begin;
    run.valid = {first_row + inner.valid.begin, first_row + inner.valid.end};
  } else {
    run.valid = {first_row, outer.valid.end * inner.size};
  }
  return run;
}

// The coordinates in `shape` whose row-major positions are `valid`, if they are a box.
std::optional<Mask> box_of(MaskDim valid, const Shape& shape, std::span<const VarBounds> vars) {
  Mask box;
  const std::vector<SInt> products = suffix_products(shape);
  for (size_t i = 0; i < shape.size(); ++i) {
    const SInt& row = products[i + 1];
    std::optional<SInt> begin = divide_exact(valid.begin, row);
    std::optional<SInt> end = divide_exact(valid.end, row);
    if (begin && end) {  // whole rows
      box.push_back({*begin, *end});
      for (size_t j = i + 1; j < shape.size(); ++j) box.push_back({0, shape[j]});
      return box;
    }
    if (row == SInt(0)) return std::nullopt;
    SIntDivision first = divide(valid.begin, row);
    SIntDivision last = divide(valid.end - 1, row);
    if (first.quotient != last.quotient) return std::nullopt;
    for (const SInt& rest : {first.remainder, last.remainder})
      if (!proves_le(0, rest, vars) || !proves_le(rest, row - 1, vars)) return std::nullopt;
    box.push_back({first.quotient, first.quotient + 1});
    valid = {first.remainder, last.remainder + 1};
  }
  return box;
}

std::optional<Run> run_of(const View& view, std::span<const size_t> dims,
                          std::span<const VarBounds> vars) {
  std::optional<Run> run;
  for (size_t dim : dims) {
    const SInt& size = view.shape()[dim];
    Run next{size, view.strides()[dim], 0, view.is_masked() ? view.mask()[dim] : MaskDim{0, size}};
    run = run ? merge_runs(*run, next, vars) : next;
    if (!run) return std::nullopt;
  }
  return run;
}

// A view without valid coordinates; rank 0 has no mask that could say so.
std::optional<View> all_invalid(const Shape& shape) {
  if (shape.empty()) return std::nullopt;
  return View::make(shape, Shape(shape.size(), SInt(0)), 0, Mask(shape.size(), MaskDim{0, 0}));
}

void check_same_size(const View& view, const Shape& shape) {
  if (view.size() != product(shape))
    raise<AstError>("reshape from {} to {} elements", view.size().to_string({}),
                    product(shape).to_string({}));
}

}  // namespace

std::optional<View> View::reshape(const Shape& shape, std::span<const VarBounds> vars) const {
  if (shape == shape_) return *this;
  check_same_size(*this, shape);
  if (is_contiguous() || size_ == SInt(0)) return make(shape);
  if (is_all_invalid()) return all_invalid(shape);
  // A symbolic mask may leave out the one position of a dimension that the new shape does not have.
  for (size_t i = 0; i < mask_.size(); ++i)
    if (shape_[i] == SInt(1) && mask_[i] != MaskDim{0, 1}) return std::nullopt;

  const std::vector<size_t> old_dims = real_dims(shape_);
  const std::vector<size_t> new_dims = real_dims(shape);
  Shape strides(shape.size(), SInt(0));
  SInt offset = offset_;
  Mask mask;
  for (const SInt& size : shape) mask.push_back({0, size});
  for (const Piece& piece :
       cut(suffix_products(pick(shape_, old_dims)), suffix_products(pick(shape, new_dims)))) {
    std::span<const size_t> from(old_dims.begin() + static_cast<ptrdiff_t>(piece.old_first),
                                 old_dims.begin() + static_cast<ptrdiff_t>(piece.old_last));
    std::span<const size_t> to(new_dims.begin() + static_cast<ptrdiff_t>(piece.new_first),
                               new_dims.begin() + static_cast<ptrdiff_t>(piece.new_last));
    std::optional<Run> run = run_of(*this, from, vars);
    if (!run) return std::nullopt;
    const Shape sizes = pick(shape, to);
    std::optional<Mask> box = box_of(run->valid, sizes, vars);
    if (!box) return std::nullopt;
    const std::vector<SInt> products = suffix_products(sizes);
    offset += run->offset;
    for (size_t i = 0; i < to.size(); ++i) {
      strides[to[i]] = run->stride * products[i + 1];
      mask[to[i]] = (*box)[i];
    }
  }
  return make(shape, std::move(strides), std::move(offset), std::move(mask));
}

}  // namespace quern
