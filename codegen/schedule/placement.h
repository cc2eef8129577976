#pragma once

#include <cstdint>
#include <vector>

#include "quern/codegen/schedule/schedule.h"

namespace quern {

// A point of the iteration space at which a node is computed: for each axis of the space, which
// loops run along it.
struct Position {
  static constexpr int16_t kZero = -1;    // none: the node has size 1 along the axis
  static constexpr int16_t kResult = -2;  // those of the results
  // Else the number of the Region whose loops they are.
  std::vector<int16_t> loops;
  // The innermost region of two stages around it, or -1. There a result of several lanes or of a
  // tile has loops or work items of its own.
  int16_t stage = -1;

  bool operator==(const Position&) const = default;
};

// The loops of reduces over the same axes at the same position that do not depend on each other.
// Region 0 holds the loops over reduced axes along which results are stored (softmax).
struct Region {
  uint64_t axes = 0;
  int level = 0;         // how many reduces follow each other up to these
  bool counts = false;   // nothing that is loaded moves along the axes (see Placement)
  bool grouped = false;  // work items sum parts, which meet in local memory
  bool tiled = false;    // blocks of the reduce go by a tile of results
  Position outside, inside;
  std::vector<NodeId> reduces;

  bool has_stages() const { return grouped || tiled; }
};

// Where each node of a schedule's AST is computed. The same node may be needed at several
// positions (a value that is summed over an axis, and used along it).
//
// A reduce under which no load moves along its axes sums masks and constants, and a closed form is
// likely; its region has one loop for each axis, however the schedule splits it.
struct Placement {
  struct Place {
    Position at;
    int region = -1;  // of a reduce
  };
  std::vector<std::vector<Place>> places;  // by node
  std::vector<Region> regions;             // outer ones first
  Position output;

  // Whether the results of the region's reduces have lanes along an axis.
  bool has_lanes(const Region& region, const Axis& axis) const;
};

Placement place(const Schedule& schedule);

// Bytes of local or scratch memory in which the two stages of reduces meet.
int64_t scratch_bytes(const Schedule& schedule);

// The type in which a reduce is accumulated: half and bfloat16 are summed in float32.
DType accumulator_type(const AstNode& reduce);

}  // namespace quern
