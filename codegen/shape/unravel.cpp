#include "quern/codegen/shape/unravel.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "quern/codegen/shape/interval.h"

namespace quern {
namespace {

// Parts of a number, one a dimension; weighted by the row-major strides they add up to it.
// Constants get the digits 0 <= part < size, but for the first, which takes all that is left.
std::vector<SInt> parts_of(const SInt& number, const std::vector<SInt>& weights) {
  std::vector<SInt> parts;
  SInt rest = number;
  for (const SInt& weight : weights) {
    if (rest == SInt(0) || weight == SInt(0)) {
      parts.emplace_back(0);
      continue;
    }
    SIntDivision division = divide(rest, weight);
    parts.push_back(std::move(division.quotient));
    rest = std::move(division.remainder);
  }
  return parts;
}

// The parts by which a step of `coef` moves the coordinates. What the step does at the origin is
// the only thing it can do everywhere, but that needs numbers; else the step's own digits are
// tried.
std::vector<SInt> step_parts(const SInt& coef, const SInt& origin,
                             const std::vector<SInt>& origin_parts,
                             const std::vector<SInt>& weights) {
  bool known = coef.is_constant() && origin.is_constant();
  bool backwards = coef.is_constant() && coef.constant() < 0;
  std::vector<SInt> parts = parts_of(known ? origin + coef : backwards ? -coef : coef, weights);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (known) parts[i] -= origin_parts[i];
    else if (backwards) parts[i] = -parts[i];
  }
  return parts;
}

bool is_zero(const Affine& x) {
  return x.offset == SInt(0) &&
         std::ranges::all_of(x.coefs, [](const SInt& coef) { return coef == SInt(0); });
}

void add_scaled(Affine& sum, const Affine& x, const SInt& factor) {
  sum.offset += x.offset * factor;
  for (size_t d = 0; d < x.coefs.size(); ++d) sum.coefs[d] += x.coefs[d] * factor;
}

bool is_inside(const Affine& x, const SInt& size, std::span<const SInt> extents,
               std::span<const VarBounds> vars) {
  if (is_zero(x)) return true;
  if (bounds_of(x, extents, vars).min < 0) return false;
  Affine above = x;
  above.offset = above.offset - size + 1;
  return bounds_of(above, extents, vars).max <= 0;
}

}  // namespace

VarBounds bounds_of(const Affine& x, std::span<const SInt> extents,
                    std::span<const VarBounds> vars) {
  // Sums first, so that what depends on the same variables cancels.
  SInt low = x.offset;
  SInt high = x.offset;
  VarBounds unknown{0, 0};
  for (size_t d = 0; d < x.coefs.size(); ++d) {
    if (x.coefs[d] == SInt(0) || extents[d] == SInt(1)) continue;
    SInt reach = x.coefs[d] * (extents[d] - 1);
    VarBounds sign = x.coefs[d].bounds(vars);
    if (sign.min >= 0) {
      high += reach;
    } else if (sign.max <= 0) {
      low += reach;
    } else {
      VarBounds range = reach.bounds(vars);
      unknown = add_intervals(unknown,
                              {std::min<int64_t>(range.min, 0), std::max<int64_t>(range.max, 0)});
    }
  }
  return add_intervals({low.bounds(vars).min, high.bounds(vars).max}, unknown);
}

std::vector<Digit> unravel(const Affine& index, const Shape& shape, std::span<const SInt> extents,
                           std::span<const VarBounds> vars) {
  std::vector<SInt> weights(shape.size(), SInt(1));
  for (size_t k = shape.size(); k-- > 1;) weights[k - 1] = weights[k] * shape[k];

  const size_t rank = index.coefs.size();
  std::vector<Affine> parts(shape.size(), Affine{0, std::vector<SInt>(rank, SInt(0))});
  const std::vector<SInt> origin = parts_of(index.offset, weights);
  for (size_t k = 0; k < shape.size(); ++k) parts[k].offset = origin[k];
  for (size_t d = 0; d < rank; ++d) {
    if (extents[d] == SInt(1) || index.coefs[d] == SInt(0)) continue;
    std::vector<SInt> step = step_parts(index.coefs[d], index.offset, origin, weights);
    for (size_t k = 0; k < shape.size(); ++k) parts[k].coefs[d] = step[k];
  }

  std::vector<Digit> digits;  // innermost first
  Digit open{shape.size(), shape.size(), 1, Affine{0, std::vector<SInt>(rank, SInt(0))}};
  for (size_t k = shape.size(); k-- > 0;) {
    add_scaled(open.value, parts[k], open.size);
    open.first = k;
    open.size *= shape[k];
    // The outermost is inside as the whole index is.
    if (k > 0 && !is_inside(open.value, open.size, extents, vars)) continue;
    digits.push_back(open);
    open = {k, k, 1, Affine{0, std::vector<SInt>(rank, SInt(0))}};
  }
  std::ranges::reverse(digits);
  return digits;
}

}  // namespace quern
