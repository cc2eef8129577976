#pragma once

// Index arithmetic on affine functions of coordinates, for merging and analysing chains of views.

#include <cstddef>
#include <span>
#include <vector>

#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/view.h"

namespace quern {

// offset + sum(coefs[d] * c[d]) over a box of coordinates 0 <= c[d] < extents[d], which the
// functions below take beside it.
struct Affine {
  SInt offset;
  std::vector<SInt> coefs;
  bool operator==(const Affine&) const = default;
};

// The least and greatest value over the box and all variables; an end that is unknown is INT64_MIN
// or INT64_MAX. Exact if the sign of each coefficient is known and no extent can be less than 1.
VarBounds bounds_of(const Affine& x, std::span<const SInt> extents,
                    std::span<const VarBounds> vars);

// The coordinates first..last-1 of a shape, read as one row-major number of `size` values.
struct Digit {
  size_t first;
  size_t last;
  SInt size;
  Affine value;
};

// The row-major coordinates of `index` in `shape`, outermost first, and no more of them put
// together than needed to make each an affine function: the digits' values are in [0, size) over
// the box, and weighted by the sizes behind them they add up to the index. Precondition: the index
// is inside the shape.
std::vector<Digit> unravel(const Affine& index, const Shape& shape, std::span<const SInt> extents,
                           std::span<const VarBounds> vars);

}  // namespace quern
