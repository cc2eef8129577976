#pragma once

// View: how a box of coordinates reads a flat range of elements.
//
// The element of coordinates c is offset + sum(c[d] * strides[d]), and it is valid if every c[d] is
// inside mask[d]; where it is not valid the index means nothing. Coordinates c[d] go from 0 to
// shape[d] - 1. Strides and offset may be negative; a stride of 0 repeats an element. All may be
// symbolic.
//
// Views are immutable values. Operations that must compare symbolic integers take the bounds of the
// kernel's variables (`vars`) and refuse, never guess, if these prove nothing. Operations that
// return optional give nothing where the result is not a single View; ShapeTracker then adds one.
// AstError is for arguments that cannot mean anything: a wrong rank, a negative size, a size that
// overflows.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/shape/sint.h"

namespace quern {

using Shape = std::vector<SInt>;

// Coordinates begin <= c < end. What lies outside of the dimension, as a symbolic end may for some
// values of the variables, is not meant.
struct MaskDim {
  SInt begin;
  SInt end;
  bool operator==(const MaskDim&) const = default;
};
using Mask = std::vector<MaskDim>;

// Positions added in front of and behind a dimension.
struct PadDim {
  SInt before;
  SInt after;
};

class QUERN_API View {
 public:
  // Row-major, all valid.
  static View make(Shape shape);

  // An empty mask is none. The result is canonical, so that equal Views mostly compare equal: the
  // stride of a dimension with one (valid) coordinate is 0, the mask is empty if it excludes
  // nothing, a View without valid coordinates has offset 0, strides 0 and mask [0, 0) everywhere,
  // and one of size 0 has offset and strides 0 and no mask.
  static View make(Shape shape, Shape strides, SInt offset, Mask mask = {});

  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }
  const SInt& offset() const { return offset_; }
  // Empty if there is none.
  const Mask& mask() const { return mask_; }
  bool is_masked() const { return !mask_.empty(); }
  size_t rank() const { return shape_.size(); }

  // Row-major from element 0 on, all valid: coordinates and elements are the same thing.
  bool is_contiguous() const { return contiguous_; }
  // No coordinate is valid.
  bool is_all_invalid() const;
  // The number of coordinates, valid or not.
  SInt size() const { return size_; }

  // Dimension i of the result is dimension axes[i].
  View permute(std::span<const size_t> axes) const;
  // Repeats dimensions of size 1.
  View expand(const Shape& shape) const;
  // The added positions are invalid.
  std::optional<View> pad(std::span<const PadDim> pads, std::span<const VarBounds> vars = {}) const;
  // The part of each dimension from begin to end - 1.
  std::optional<View> shrink(std::span<const MaskDim> parts,
                             std::span<const VarBounds> vars = {}) const;
  // Every |step|-th position of each dimension; backwards, from the last one on, if step is
  // negative. So -1 flips. A step of 0 is an AstError, as is a size that does not divide
  // symbolically.
  std::optional<View> stride(std::span<const int64_t> steps,
                             std::span<const VarBounds> vars = {}) const;
  // The same elements in the same row-major order.
  std::optional<View> reshape(const Shape& shape, std::span<const VarBounds> vars = {}) const;

  // The View that does what `outer` and then `inner` do: outer's index is unraveled through inner's
  // shape. Precondition: wherever outer is used, its valid indices are inside inner's size
  // (ShapeTracker::check). The result is right for all values within `vars`.
  static std::optional<View> merge(const View& inner, const View& outer,
                                   std::span<const VarBounds> vars = {});

  bool operator==(const View&) const = default;
  uint64_t hash() const;
  // For messages and tests: "V([2,3]; [3,1]; 0; [[0,2],[1,3]])", with "-" for no mask.
  std::string to_string(std::span<const std::string> names = {}) const;

 private:
  View() = default;

  Shape shape_;
  Shape strides_;
  SInt offset_;
  Mask mask_;
  SInt size_;
  bool contiguous_ = true;
};

// The row-major strides of a shape; 0 where a dimension is 1.
Shape row_major_strides(const Shape& shape);

// The product of the dimensions; 0 if one is 0, whatever the others are.
SInt product(const Shape& shape);

}  // namespace quern
