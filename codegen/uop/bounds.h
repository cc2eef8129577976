#pragma once

#include <cstdint>
#include <span>

#include "quern/codegen/uop/uop.h"

namespace quern {

struct Bounds {
  int64_t min;
  int64_t max;
  bool operator==(const Bounds&) const = default;
};

// The range of every lane of a node yet to be made, from those of its sources. Sound, not exact.
// Index arithmetic does not wrap, so its bounds saturate; an integer op that might wrap gives the
// type's range. Floats give all of int64.
Bounds compute_bounds(Op op, DType dtype, std::span<const UOp> src, int64_t arg,
                      std::span<const int64_t> args);

}  // namespace quern
