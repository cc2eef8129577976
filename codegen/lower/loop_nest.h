#pragma once

#include <bitset>
#include <span>
#include <vector>

#include "quern/codegen/uop/uop.h"

namespace quern {

// Which uops lie in which loop, for a graph whose reduces have become accumulators. Loops are
// numbered from the outermost in, -1 is the kernel's body.
//
// A uop lies in the innermost loop that it depends on. An accumulator's DEFINE_ACC lies around its
// own loops, its ops and ASSIGN inside them, and users of the ASSIGN outside again. A BARRIER lies
// outside of the loops that are over before it.
class LoopNest {
 public:
  static constexpr size_t kMaxLoops = 256;

  struct Accumulator {
    UOp define;
    UOp assign;
    std::vector<UOp> ranges;
  };

  // `uops` in order of id. Throws CompileError if there are more than kMaxLoops loops.
  LoopNest(std::span<const UOp> uops, std::span<const Accumulator> accumulators);

  int count() const { return static_cast<int>(ranges_.size()); }
  UOp range(int loop) const { return ranges_[static_cast<size_t>(loop)]; }
  int parent(int loop) const { return parent_[static_cast<size_t>(loop)]; }
  int loop_of(UOp u) const { return loop_of_[u->id]; }

 private:
  using LoopSet = std::bitset<kMaxLoops>;
  struct Role {
    enum Kind : uint8_t { Define, Assign, Barrier } kind = Define;
    LoopSet own;
  };

  static int innermost(const LoopSet& set);
  bool propagate(std::span<const UOp> uops, const std::vector<int>& role_of);
  LoopSet around(const LoopSet& own) const;

  std::vector<UOp> ranges_;
  std::vector<int> number_;     // RANGE id -> loop
  std::vector<LoopSet> outer_;  // loop -> the loops around it
  std::vector<Role> roles_;
  std::vector<LoopSet> exported_;  // id -> the loops that a user of it must lie in
  std::vector<int> loop_of_;
  std::vector<int> parent_;
};

}  // namespace quern
