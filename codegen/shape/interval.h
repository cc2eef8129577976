#pragma once

// Interval arithmetic on VarBounds. INT64_MIN as the lower and INT64_MAX as the upper end mean
// "unknown"; an end that overflows becomes that, and stays so whatever is added to it.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "quern/codegen/shape/sint.h"

namespace quern {

inline constexpr int64_t kMinusInfinity = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kPlusInfinity = std::numeric_limits<int64_t>::max();

inline VarBounds add_intervals(VarBounds a, VarBounds b) {
  VarBounds sum;
  if (a.min == kMinusInfinity || b.min == kMinusInfinity) {
    sum.min = kMinusInfinity;
  } else if (__builtin_add_overflow(a.min, b.min, &sum.min)) {
    sum.min = a.min < 0 ? kMinusInfinity : kPlusInfinity;
  }
  if (a.max == kPlusInfinity || b.max == kPlusInfinity) {
    sum.max = kPlusInfinity;
  } else if (__builtin_add_overflow(a.max, b.max, &sum.max)) {
    sum.max = a.max < 0 ? kMinusInfinity : kPlusInfinity;
  }
  return sum;
}

inline VarBounds multiply_intervals(VarBounds a, VarBounds b) {
  auto saturating = [](int64_t x, int64_t y) {
    int64_t product;
    if (!__builtin_mul_overflow(x, y, &product)) return product;
    return (x < 0) == (y < 0) ? kPlusInfinity : kMinusInfinity;
  };
  auto [low, high] = std::minmax({saturating(a.min, b.min), saturating(a.min, b.max),
                                  saturating(a.max, b.min), saturating(a.max, b.max)});
  return {low, high};
}

}  // namespace quern
