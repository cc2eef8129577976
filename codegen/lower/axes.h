#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "quern/codegen/schedule/placement.h"
#include "quern/codegen/simplify/simplify.h"

namespace quern {

using Coords = std::vector<UOp>;  // by axis of the simplified space

// What a schedule's axes become: a task, group or item id (SPECIAL), a loop (RANGE), or lanes
// (LANE); and the coordinates of each position of a placement in terms of them.
class LoweredAxes {
 public:
  LoweredAxes(const Schedule& schedule, const Placement& placement, Simplifier& s,
              std::span<const UOp> vars);

  Coords coords(const Position& at) const;
  // The condition under which coordinates lie within the space along those of `axes` (bits) that
  // padding or the launch's overhang make longer; null if they always do.
  UOp inside(const Coords& coords, uint64_t axes = ~uint64_t{0}) const;
  // True for one work item of those that store the same element at this position; null if there
  // is one only.
  UOp is_writer(const Position& at) const;

  // Of a region: its loops that sum, slow ones first, and pairs of lane axis and size.
  std::span<const UOp> ranges(int region) const { return loops_[index(region)].ranges; }
  std::span<const int64_t> lanes(int region) const { return loops_[index(region)].lanes; }

  // Where the two stages of a region meet: one of `places` for each work item or place of a tile,
  // of `lanes` elements each.
  struct Slots {
    int64_t places = 1, lanes = 1;
    UOp lane = nullptr;      // the element within a place
    UOp first = nullptr;     // the element that the first stage keeps
    UOp second = nullptr;    // those that the second one takes, for all of `steps`:
    std::vector<UOp> steps;  // RANGEs over the parts
  };
  const Slots& slots(int region, const Position& at);
  // A new loop over the places of a tile.
  UOp place_loop(int64_t places) { return range(places, 0); }
  // The loops around the first stage of a tiled region: blocks, and the tile's places.
  std::span<const UOp> stage_ranges(int region) const { return loops_[index(region)].stage; }
  // The loops in which a region as a whole lies, and tasks.
  std::vector<UOp> around(int region) const;

  SInt global_size[3] = {1, 1, 1};
  int64_t local_size[3] = {1, 1, 1};

 private:
  struct RegionLoops {
    std::vector<UOp> ranges;
    std::vector<int64_t> lanes;
    std::vector<UOp> stage;
    std::vector<UOp> tile;  // by axis of the schedule: the loop of a Tile axis
    Coords coords;          // along the region's own axes
  };
  struct SlotsAt {
    int region;
    int16_t stage;
    Slots slots;
  };

  static size_t index(int i) { return static_cast<size_t>(i); }
  const Axis& axis(size_t i) const { return schedule_.axes()[i]; }
  UOp range(const SInt& size, int base);
  UOp lane(size_t i) const;
  void advance(Coords& coords, const Axis& axis, UOp position) const;
  void open_launch();
  void place_launch(std::span<const size_t> axes, SpecialKind kind);
  void open_results();
  void open_region(int region);
  UOp result_position(size_t i, int16_t stage) const;

  const Schedule& schedule_;
  const Placement& placement_;
  Simplifier& s_;
  Graph& g_;
  std::span<const UOp> vars_;
  std::vector<UOp> positions_;  // by axis of the schedule: along result and group axes
  std::vector<RegionLoops> loops_;
  std::deque<SlotsAt> slots_;
  uint64_t longer_ = 0;  // axes of the space along which positions may lie beyond its end
  int64_t next_range_ = 0;
};

}  // namespace quern
