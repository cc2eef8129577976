#include "quern/codegen/lower/axes.h"

#include <algorithm>

#include "quern/codegen/error.h"
#include "quern/codegen/lower/view_index.h"
#include "quern/codegen/schedule/launch_dims.h"

namespace quern {

LoweredAxes::LoweredAxes(const Schedule& schedule, const Placement& placement, Simplifier& s,
                         std::span<const UOp> vars)
    : schedule_(schedule),
      placement_(placement),
      s_(s),
      g_(s.graph()),
      vars_(vars),
      positions_(schedule.axes().size(), nullptr),
      longer_(schedule.padded()) {
  open_launch();
  open_results();
  for (size_t i = 0; i < placement.regions.size(); ++i) {
    loops_.emplace_back();
    open_region(static_cast<int>(i));
  }
}

UOp LoweredAxes::range(const SInt& size, int base) {
  return s_.make(Op::RANGE, Scalar::Index, {to_uop(s_, size, vars_)}, next_range_++, {base});
}

UOp LoweredAxes::lane(size_t i) const {
  return s_.make(Op::LANE, Scalar::Index, {}, static_cast<int64_t>(i), {axis(i).size.constant()});
}

void LoweredAxes::advance(Coords& coords, const Axis& axis, UOp position) const {
  UOp& at = coords[static_cast<size_t>(axis.base)];
  at = s_.add(at, s_.mul(position, axis.stride));
}

void LoweredAxes::open_launch() {
  std::vector<size_t> outer, items;
  for (size_t i = 0; i < positions_.size(); ++i) {
    switch (axis(i).kind) {
      case AxisKind::Thread: outer.push_back(i); break;
      case AxisKind::Global:
        if (schedule_.target().has_local) outer.push_back(i);
        break;
      case AxisKind::Local:
      case AxisKind::Mid:
      case AxisKind::Group: items.push_back(i); break;
      default: break;
    }
  }
  SpecialKind kind = !schedule_.target().has_local     ? SpecialKind::Task
                     : schedule_.has_free_local_size() ? SpecialKind::Item
                                                       : SpecialKind::Group;
  place_launch(outer, kind);
  place_launch(items, SpecialKind::Local);
}

// Gives each of the axes, slowest first, its part of the launch's ids.
void LoweredAxes::place_launch(std::span<const size_t> axes, SpecialKind kind) {
  bool is_local = kind == SpecialKind::Local, is_task = kind == SpecialKind::Task;
  std::vector<SInt> sizes;
  for (size_t i : axes) sizes.push_back(axis(i).size);
  // A cpu has one dimension of tasks.
  constexpr int64_t kTasks[3] = {0, 1, 1};
  const Target& target = schedule_.target();
  std::optional<LaunchDims> dims = launch_dims(sizes,
                                               is_task    ? kTasks
                                               : is_local ? target.local_max
                                                          : target.global_max,
                                               schedule_.ast().var_bounds());
  if (!dims)
    raise<ScheduleError>("{}: more work groups than {} x {} x {}", schedule_.name(),
                         target.global_max[0], target.global_max[1], target.global_max[2]);
  UOp ids[3];
  for (int d = 0; d < 3; ++d) {
    ids[d] = s_.make(Op::SPECIAL, Scalar::Index, {to_uop(s_, dims->size[d], vars_)}, d,
                     {static_cast<int64_t>(kind)});
    if (is_local) local_size[d] = dims->size[d].constant();
    else global_size[d] = dims->size[d];
  }
  if (dims->is_linear)
    ids[0] = s_.add(s_.mul(s_.add(s_.mul(ids[2], to_uop(s_, dims->size[1], vars_)), ids[1]),
                           to_uop(s_, dims->size[0], vars_)),
                    ids[0]);
  // Axes that share an id are its digits, the last one fastest.
  for (size_t i = axes.size(); i-- > 0;) {
    int d = dims->is_linear ? 0 : dims->dim_of[i];
    bool is_slowest = i == 0 || (!dims->is_linear && dims->dim_of[i - 1] != d);
    UOp size = to_uop(s_, sizes[i], vars_);
    positions_[axes[i]] = is_slowest ? ids[d] : s_.alu(Op::FLOORMOD, {ids[d], size});
    ids[d] = s_.alu(Op::FLOORDIV, {ids[d], size});
  }
  if (dims->overhangs) longer_ |= uint64_t{1} << axis(axes[0]).base;
}

void LoweredAxes::open_results() {
  for (size_t i = 0; i < positions_.size(); ++i) {
    const Axis& a = axis(i);
    bool is_loop =
        a.kind == AxisKind::Tile || (a.kind == AxisKind::Global && !schedule_.target().has_local);
    if (is_loop) positions_[i] = range(a.size, a.base);
    if (a.kind == AxisKind::Upcast) positions_[i] = lane(i);
  }
}

// In a region of two stages a lane that is MID is a work item, and a tile has loops of its own.
UOp LoweredAxes::result_position(size_t i, int16_t stage) const {
  if (axis(i).kind == AxisKind::Mid && (stage < 0 || !placement_.regions[index(stage)].grouped))
    return lane(i);
  if (axis(i).kind == AxisKind::Tile && stage >= 0)
    if (UOp loop = loops_[index(stage)].tile[i]) return loop;
  return positions_[i];
}

void LoweredAxes::open_region(int number) {
  const Region& region = placement_.regions[index(number)];
  RegionLoops& loops = loops_.back();
  loops.coords.assign(static_cast<size_t>(schedule_.rank()), g_.index(0));
  loops.tile.assign(positions_.size(), nullptr);
  auto add_range = [&](const SInt& size, int base, std::vector<UOp>& list) {
    UOp r = range(size, base);
    if (r->op == Op::RANGE) list.push_back(r);
    return r;
  };
  if (region.counts) {
    for (int base = 0; base < schedule_.rank(); ++base)
      if (region.axes >> base & 1)
        loops.coords[static_cast<size_t>(base)] =
            add_range(schedule_.space().full_shape[static_cast<size_t>(base)], base, loops.ranges);
    return;
  }
  // Blocks are around the tile's loops, and those around the other loops of the reduce.
  for (size_t i = 0; i < positions_.size(); ++i)
    if (const Axis& a = axis(i); a.kind == AxisKind::Block && region.axes >> a.base & 1)
      advance(loops.coords, a,
              add_range(a.size, a.base, region.tiled ? loops.stage : loops.ranges));
  for (size_t i = 0; i < positions_.size(); ++i)
    if (const Axis& a = axis(i); a.kind == AxisKind::Tile && region.tiled &&
                                 region.outside.loops[index(a.base)] == Position::kResult)
      loops.tile[i] = add_range(a.size, a.base, loops.stage);
  for (size_t i = 0; i < positions_.size(); ++i) {
    const Axis& a = axis(i);
    if (!(region.axes >> a.base & 1)) continue;
    if (a.kind == AxisKind::Group) {
      advance(loops.coords, a, positions_[i]);
    } else if (a.kind == AxisKind::Reduce) {
      advance(loops.coords, a, add_range(a.size, a.base, loops.ranges));
    } else if (a.kind == AxisKind::Unroll) {
      loops.lanes.push_back(static_cast<int64_t>(i));
      loops.lanes.push_back(a.size.constant());
      advance(loops.coords, a, lane(i));
    }
  }
}

Coords LoweredAxes::coords(const Position& at) const {
  Coords out(at.loops.size(), g_.index(0));
  for (size_t base = 0; base < out.size(); ++base)
    if (at.loops[base] >= 0) out[base] = loops_[index(at.loops[base])].coords[base];
  for (size_t i = 0; i < positions_.size(); ++i)
    if (positions_[i] || axis(i).kind == AxisKind::Mid)
      if (at.loops[index(axis(i).base)] == Position::kResult)
        advance(out, axis(i), result_position(i, at.stage));
  return out;
}

UOp LoweredAxes::inside(const Coords& coords, uint64_t axes) const {
  UOp all = nullptr;
  for (size_t base = 0; base < coords.size(); ++base) {
    if (!((longer_ & axes) >> base & 1)) continue;
    UOp size = to_uop(s_, schedule_.space().full_shape[base], vars_);
    UOp condition = s_.less(coords[base], size);
    if (!condition->is_const(1)) all = all ? s_.both(all, condition) : condition;
  }
  return all;
}

std::vector<UOp> LoweredAxes::around(int number) const {
  const Region& region = placement_.regions[index(number)];
  std::vector<UOp> roots;
  for (size_t i = 0; i < positions_.size(); ++i) {
    AxisKind kind = axis(i).kind;
    int16_t loops = region.outside.loops[index(axis(i).base)];
    bool is_outer = kind == AxisKind::Thread || kind == AxisKind::Global;
    if (loops == Position::kResult && is_outer) roots.push_back(positions_[i]);
    if (loops >= 0) roots.push_back(loops_[index(loops)].coords[index(axis(i).base)]);
  }
  std::vector<UOp> out;
  if (roots.empty()) return out;
  for (UOp u : reachable(roots)) {
    bool is_task = u->op == Op::SPECIAL && u->args[0] == static_cast<int64_t>(SpecialKind::Task);
    if (u->op == Op::RANGE || is_task) out.push_back(u);
  }
  return out;
}

const LoweredAxes::Slots& LoweredAxes::slots(int number, const Position& at) {
  for (const SlotsAt& known : slots_)
    if (known.region == number && known.stage == at.stage) return known.slots;
  const Region& region = placement_.regions[index(number)];
  Slots out;
  out.first = out.second = out.lane = g_.index(0);
  // In the order of the axes, the last one fastest, and lanes after all others.
  for (size_t i = 0; i < positions_.size(); ++i) {
    const Axis& a = axis(i);
    UOp first = nullptr, second = nullptr;
    bool is_item =
        a.kind == AxisKind::Local || a.kind == AxisKind::Mid || a.kind == AxisKind::Group;
    if (region.grouped && is_item) {
      first = second = positions_[i];
      if (a.kind == AxisKind::Group && region.axes >> a.base & 1) {
        second = range(a.size, a.base);
        out.steps.push_back(second);
      } else if (region.outside.loops[index(a.base)] == Position::kResult) {
        second = result_position(i, at.stage);
      }
    } else if (loops_[index(number)].tile[i]) {
      first = loops_[index(number)].tile[i];
      second = result_position(i, at.stage);
    } else {
      continue;
    }
    out.first = s_.add(s_.mul(out.first, a.size.constant()), first);
    out.second = s_.add(s_.mul(out.second, a.size.constant()), second);
    out.places *= a.size.constant();
  }
  for (size_t i = 0; i < positions_.size(); ++i) {
    if (!placement_.has_lanes(region, axis(i))) continue;
    out.lane = s_.add(s_.mul(out.lane, axis(i).size.constant()), lane(i));
    out.lanes *= axis(i).size.constant();
  }
  out.first = s_.add(s_.mul(out.first, out.lanes), out.lane);
  out.second = s_.add(s_.mul(out.second, out.lanes), out.lane);
  return slots_.emplace_back(SlotsAt{number, at.stage, std::move(out)}).slots;
}

UOp LoweredAxes::is_writer(const Position& at) const {
  UOp all = nullptr;
  for (size_t i = 0; i < positions_.size(); ++i) {
    bool repeats =
        axis(i).kind == AxisKind::Mid ||
        (axis(i).kind == AxisKind::Group && at.loops[index(axis(i).base)] == Position::kZero);
    if (!repeats) continue;
    UOp condition = s_.less(positions_[i], g_.index(1));
    all = all ? s_.both(all, condition) : condition;
  }
  return all;
}

}  // namespace quern
