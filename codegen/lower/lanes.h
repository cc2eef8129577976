#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quern/codegen/uop/uop.h"

namespace quern {

// A set of LANE axes, as bits of their position in the order of axes (the highest is the fastest).
using LaneMask = uint64_t;

// The upcast and unrolled axes of a kernel, in the order in which their positions make up a lane
// number.
class LaneOrder {
 public:
  // `uops` in order of id; finds the LANEs and ranks them by how many accesses are contiguous along
  // each.
  explicit LaneOrder(std::span<const UOp> uops);

  LaneMask bit(int64_t axis) const;
  int64_t size(int position) const { return sizes_[static_cast<size_t>(position)]; }
  int count() const { return static_cast<int>(axes_.size()); }
  LaneMask fastest() const { return axes_.empty() ? 0 : LaneMask{1} << (axes_.size() - 1); }

  int lanes(LaneMask mask) const;
  // For each lane of `to`, the lane of `from` (a subset of `to`) with the same positions.
  std::vector<int64_t> map(LaneMask from, LaneMask to) const;
  // The lanes of `all` at which the axes of `part` have their positions number `index`, in order.
  std::vector<int64_t> select(LaneMask all, LaneMask part, int64_t index) const;
  // The position along the single axis of `bit`, for each lane of `mask`.
  std::vector<int64_t> positions(LaneMask bit, LaneMask mask) const { return map(bit, mask); }

 private:
  std::vector<int64_t> axes_, sizes_;  // slowest first
};

}  // namespace quern
