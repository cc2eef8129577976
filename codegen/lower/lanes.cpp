#include "quern/codegen/lower/lanes.h"

#include <algorithm>
#include <bit>

#include "quern/codegen/simplify/index_sum.h"

namespace quern {
namespace {

// How many loads and stores move to the next element with the next position of this LANE.
int contiguous_accesses(std::span<const UOp> uops, UOp lane) {
  int count = 0;
  for (UOp u : uops) {
    if (u->op != Op::LOAD && u->op != Op::STORE) continue;
    for (auto [base, coefficient] : to_sum(u->src(1)).terms)
      count += base == lane && coefficient == 1;
  }
  return count;
}

}  // namespace

LaneOrder::LaneOrder(std::span<const UOp> uops) {
  std::vector<UOp> found;
  for (UOp u : uops)
    if (u->op == Op::LANE) found.push_back(u);
  std::ranges::sort(found, {}, [](UOp u) { return u->arg; });
  if (found.size() > 1) {
    auto score = [&](UOp u) { return contiguous_accesses(uops, u); };
    // The last of equals, so that an axis that was upcast later is the faster one.
    auto best = found.begin();
    for (auto it = found.begin(); it != found.end(); ++it)
      if (score(*it) >= score(*best)) best = it;
    std::rotate(best, best + 1, found.end());
  }
  for (UOp u : found) {
    axes_.push_back(u->arg);
    sizes_.push_back(u->args[0]);
  }
}

LaneMask LaneOrder::bit(int64_t axis) const {
  auto at = std::ranges::find(axes_, axis);
  return at == axes_.end() ? 0 : LaneMask{1} << (at - axes_.begin());
}

int LaneOrder::lanes(LaneMask mask) const {
  int64_t n = 1;
  for (int i = 0; i < count(); ++i)
    if (mask >> i & 1) n *= size(i);
  return static_cast<int>(n);
}

std::vector<int64_t> LaneOrder::map(LaneMask from, LaneMask to) const {
  std::vector<int64_t> out(static_cast<size_t>(lanes(to)), 0);
  int64_t stride_to = 1, stride_from = 1;
  for (int i = count(); i-- > 0;) {
    if (!(to >> i & 1)) continue;
    if (from >> i & 1) {
      for (size_t lane = 0; lane < out.size(); ++lane)
        out[lane] += static_cast<int64_t>(lane) / stride_to % size(i) * stride_from;
      stride_from *= size(i);
    }
    stride_to *= size(i);
  }
  return out;
}

std::vector<int64_t> LaneOrder::select(LaneMask all, LaneMask part, int64_t index) const {
  std::vector<int64_t> of = map(part, all), out;
  for (size_t lane = 0; lane < of.size(); ++lane)
    if (of[lane] == index) out.push_back(static_cast<int64_t>(lane));
  return out;
}

}  // namespace quern
