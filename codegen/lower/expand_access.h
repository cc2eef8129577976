#pragma once

#include <vector>

#include "quern/codegen/lower/lanes.h"
#include "quern/codegen/simplify/simplify.h"
#include "quern/codegen/target.h"

namespace quern {

// Cuts one LOAD or STORE over the lanes of `expand` into accesses of consecutive elements.
class AccessExpander {
 public:
  // `masks` (by id of the scalar graph's nodes) may still change until the first access.
  AccessExpander(Simplifier& s, const LaneOrder& order, const std::vector<LaneMask>& masks,
                 const Target& target)
      : s_(s), order_(order), masks_(masks), target_(target) {}

  // The value of a scalar LOAD over its lanes. `gate` is its gate over the same lanes, or null;
  // `barrier` what it comes after, or null.
  UOp load(UOp u, UOp gate, UOp barrier);
  // Appends the STOREs of `value`, whose lanes, like the gate's, are those of `mask`.
  void store(UOp u, UOp value, UOp gate, UOp barrier, LaneMask mask, std::vector<UOp>& stores);

 private:
  struct Lane {
    int64_t lane;  // its number in the whole value
    UOp base;      // the address is base + offset
    int64_t offset;
    UOp gate;  // null if the access always happens
  };
  struct Run {  // lanes of consecutive addresses
    std::vector<Lane> lanes;
  };

  std::vector<Lane> lanes_of(UOp u, LaneMask mask);
  std::vector<UOp> enumerate(UOp u);
  std::vector<Run> runs(UOp u, std::vector<Lane> lanes);
  int chunk(UOp buffer, DType dtype, const Run& run, size_t start) const;
  UOp chunk_gate(std::span<const Lane> lanes, UOp gate);
  UOp load_piece(UOp u, UOp gate, UOp barrier, std::span<const Lane> lanes);

  Simplifier& s_;
  const LaneOrder& order_;
  const std::vector<LaneMask>& masks_;
  const Target& target_;
};

}  // namespace quern
