#include <algorithm>

#include "quern/codegen/error.h"
#include "quern/codegen/schedule/launch_dims.h"
#include "quern/codegen/schedule/placement.h"
#include "quern/codegen/schedule/schedule.h"

// Which opts are legal.
namespace quern {
namespace {

// A kernel of more lane operations than this would take seconds to compile.
constexpr int64_t kMaxUpcastLanes = 256;
constexpr int64_t kMaxLanes = 1024;
constexpr int64_t kMaxLaneNodes = 32768;
// Padding may multiply an axis by less than this.
constexpr int64_t kMaxPadding = 4;

template <class... A>
[[noreturn]] void refuse(const Schedule& s, const Opt& opt, fmt::format_string<A...> format,
                         A&&... args) {
  raise<ScheduleError>("{} on {}: {}", to_string(opt), s.name(),
                       fmt::format(format, std::forward<A>(args)...));
}

// By OptAxis.
constexpr const char* kAxisNames[] = {"result ", "", "reduce ", "ungrouped reduce ", ""};

}  // namespace

std::pair<int, int> Schedule::axes_of(OptOp op) const {
  switch (axis_of(op)) {
    case OptAxis::Result: return {0, first_reduce()};
    case OptAxis::Any: return {0, first_lane()};
    case OptAxis::Reduce: return {first_reduce(), first_lane()};
    case OptAxis::Ungrouped: return {first(AxisKind::Block), first_lane()};
    case OptAxis::None: break;
  }
  return {0, 0};
}

Opt Schedule::checked(const Opt& opt) const {
  if (axis_of(opt.op) == OptAxis::None) {
    check_op(opt, 0, 0);
    return opt;
  }
  auto [begin, end] = axes_of(opt.op);
  const char* what = kAxisNames[static_cast<int>(axis_of(opt.op))];
  if (opt.axis < 0 || opt.axis >= end - begin)
    refuse(*this, opt, "no such axis; there are {} {}axes", std::max(0, end - begin), what);
  int axis = begin + opt.axis;
  const Axis& chosen = axes_[static_cast<size_t>(axis)];
  if (!chosen.size.is_constant()) refuse(*this, opt, "the axis has a symbolic size");
  int64_t size = chosen.size.constant(), amount = opt.amount == 0 ? size : opt.amount;
  bool divides = amount > 0 && (size == 0 || size % amount == 0);
  if (amount < 0 || (!divides && opt.op != OptOp::PADTO))
    refuse(*this, opt, "the axis has size {}, which {} does not divide", size, amount);
  if (amount <= 1) refuse(*this, opt, "an amount of 1 changes nothing");
  check_op(opt, axis, amount);
  return {opt.op, axis, amount};
}

void Schedule::check_op(const Opt& opt, int axis, int64_t amount) const {
  const Axis* chosen =
      axis < static_cast<int>(axes_.size()) ? &axes_[static_cast<size_t>(axis)] : nullptr;
  auto require_kind = [&](std::initializer_list<AxisKind> kinds) {
    if (std::ranges::find(kinds, chosen->kind) != kinds.end()) return;
    std::string list;
    for (AxisKind kind : kinds) list += (list.empty() ? "" : ", ") + std::string(to_string(kind));
    refuse(*this, opt, "the axis is a {} axis; expected one of {}", to_string(chosen->kind), list);
  };
  auto require_groups = [&] {
    if (!target_->has_local) refuse(*this, opt, "the target has no work groups");
    if (no_locals_) refuse(*this, opt, "NOLOCALS leaves no local axes");
  };
  auto require_shared = [&] {
    require_groups();
    if (!target_->has_shared) refuse(*this, opt, "the target has no local memory");
  };
  switch (opt.op) {
    case OptOp::UPCAST: require_kind({AxisKind::Global, AxisKind::Local, AxisKind::Tile}); break;
    case OptOp::UPCASTMID:
      require_shared();
      require_kind({AxisKind::Global, AxisKind::Local});
      if (!has(AxisKind::Group)) refuse(*this, opt, "there is no grouped reduce");
      if (is_in_place()) refuse(*this, opt, "the kernel reads a buffer that it writes");
      break;
    case OptOp::UNROLL: require_kind({AxisKind::Group, AxisKind::Block, AxisKind::Reduce}); break;
    case OptOp::LOCAL:
      require_groups();
      require_kind({AxisKind::Global});
      break;
    case OptOp::GROUP:
    case OptOp::GROUPTOP:
      require_shared();
      require_kind({AxisKind::Reduce});
      // One work item of a group stores, while others might still read for another output.
      if (is_in_place() && ast_->outputs().size() > 1)
        refuse(*this, opt, "one of several outputs is read as well");
      break;
    case OptOp::NOLOCALS:
      require_groups();
      if (items() > 1) refuse(*this, opt, "there are local or grouped axes");
      break;
    case OptOp::PADTO: {
      for (const Axis& a : axes_)
        if (a.base == chosen->base && a.stride > chosen->stride)
          refuse(*this, opt, "only the outermost part of an axis can be padded");
      int64_t size = chosen->size.constant();
      if (size % amount == 0) refuse(*this, opt, "the axis has size {}, a multiple", size);
      if (amount >= size * kMaxPadding ||
          (size + amount - 1) / amount * amount >= size * kMaxPadding)
        refuse(*this, opt, "size {} would become {} or more times as long", size, kMaxPadding);
      break;
    }
    case OptOp::TILE:
      require_kind({AxisKind::Global, AxisKind::Reduce});
      if (chosen->kind == AxisKind::Reduce) {
        if (chosen->size == SInt(amount)) refuse(*this, opt, "one block changes nothing");
        break;
      }
      if (target_->has_local) refuse(*this, opt, "the results of work items stay in registers");
      if (is_in_place()) refuse(*this, opt, "the kernel reads a buffer that it writes");
      break;
    case OptOp::THREAD:
      require_kind({AxisKind::Global});
      if (target_->has_local) refuse(*this, opt, "only a target without work groups has tasks");
      break;
  }
}

void Schedule::check_limits(const Opt& opt) const {
  int64_t nodes = static_cast<int64_t>(ast_->nodes().size());
  if (upcast_lanes() > kMaxUpcastLanes)
    refuse(*this, opt, "{} lanes a result; the limit is {}", upcast_lanes(), kMaxUpcastLanes);
  if (all_lanes() > kMaxLanes)
    refuse(*this, opt, "{} lanes in all; the limit is {}", all_lanes(), kMaxLanes);
  if (all_lanes() * nodes > kMaxLaneNodes && all_lanes() > 16)
    refuse(*this, opt, "{} lanes of {} nodes; the limit of their product is {}", all_lanes(), nodes,
           kMaxLaneNodes);
  if (!target_->has_local) {
    if (int64_t bytes = scratch_bytes(*this); bytes > target_->scratch_max)
      refuse(*this, opt, "{} bytes of scratch memory; the limit is {}", bytes,
             target_->scratch_max);
    return;
  }
  if (items() > target_->group_max)
    refuse(*this, opt, "{} work items in a group; the limit is {}", items(), target_->group_max);
  std::vector<SInt> sizes;
  for (const Axis& a : axes_)
    if (a.kind == AxisKind::Local || a.kind == AxisKind::Mid || a.kind == AxisKind::Group)
      sizes.push_back(a.size);
  std::optional<LaunchDims> dims = launch_dims(sizes, target_->local_max, {});
  if (!dims || dims->overhangs)
    refuse(*this, opt, "local axes that do not fit into {} x {} x {} work items",
           target_->local_max[0], target_->local_max[1], target_->local_max[2]);
  if (int64_t bytes = scratch_bytes(*this); bytes > target_->shared_max)
    refuse(*this, opt, "{} bytes of local memory; the limit is {}", bytes, target_->shared_max);
}

}  // namespace quern
