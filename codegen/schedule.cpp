#include "codegen/schedule.h"

#include <algorithm>

#include "codegen/error.h"
#include "codegen/iteration_space.h"

namespace quern {
namespace {

// A kernel of more lane operations than this would take seconds to compile.
constexpr int64_t kMaxUpcastLanes = 256;
constexpr int64_t kMaxLanes = 1024;
constexpr int64_t kMaxLaneNodes = 32768;

int rank_of(AxisKind kind) {
  switch (kind) {
    case AxisKind::Thread: return 0;
    case AxisKind::Global: return 1;
    case AxisKind::Reduce: return 2;
    case AxisKind::Unroll:
    case AxisKind::Upcast: return 3;
  }
  return 3;
}

}  // namespace

Schedule::Schedule(const Ast& ast, const Target& target)
    : ast_(&ast), target_(&target), space_(simplify_space(ast)) {
  for (AxisKind kind : {AxisKind::Global, AxisKind::Reduce})
    for (int base = 0; base < rank(); ++base)
      if (is_reduced(base) == (kind == AxisKind::Reduce))
        axes_.push_back({kind, space_.full_shape[static_cast<size_t>(base)], base, 1});
}

void Schedule::apply(std::span<const Opt> opts) {
  for (const Opt& opt : opts) apply(opt);
}

int Schedule::first_reduce() const {
  auto at = std::ranges::find_if(axes_, [](const Axis& a) { return rank_of(a.kind) >= 2; });
  return static_cast<int>(at - axes_.begin());
}

int Schedule::first_lane() const {
  auto at = std::ranges::find_if(axes_, &Axis::is_lane);
  return static_cast<int>(at - axes_.begin());
}

int64_t Schedule::upcast_lanes() const {
  int64_t n = 1;
  for (const Axis& a : axes_)
    if (a.kind == AxisKind::Upcast) n *= a.size.constant();
  return n;
}

int64_t Schedule::all_lanes() const {
  int64_t n = 1;
  for (const Axis& a : axes_)
    if (a.is_lane()) n *= a.size.constant();
  return n;
}

// The opt with its axis as a position in axes() and its amount spelled out.
Opt Schedule::checked(const Opt& opt) const {
  auto refuse = [&](const std::string& why) {
    raise<ScheduleError>("{} on {}: {}", to_string(opt), name(), why);
  };
  bool unroll = opt.op == OptOp::UNROLL;
  int axis = opt.axis + (unroll ? first_reduce() : 0);
  int end = unroll ? first_lane() : first_reduce();
  if (opt.axis < 0 || axis >= end)
    refuse(fmt::format("no such axis; there are {} {} axes",
                       std::max(0, end - (unroll ? first_reduce() : 0)),
                       unroll ? "reduce" : "global"));
  const Axis& target = axes_[static_cast<size_t>(axis)];
  if (target.kind == AxisKind::Thread) refuse("the axis is a thread axis already");
  if (!target.size.is_constant()) refuse("the axis has a symbolic size");
  int64_t size = target.size.constant(), amount = opt.amount == 0 ? size : opt.amount;
  if (amount < 0 || (size != 0 && size % amount != 0))
    refuse(fmt::format("the axis has size {}, which {} does not divide", size, amount));
  if (amount <= 1) refuse("an amount of 1 changes nothing");
  if (opt.op == OptOp::THREAD) {
    if (target_->has_local) refuse("only a target without work groups has tasks");
    return {opt.op, axis, amount};
  }
  int64_t upcast = upcast_lanes() * (unroll ? 1 : amount), lanes = all_lanes() * amount;
  if (upcast > kMaxUpcastLanes)
    refuse(fmt::format("{} lanes a result; the limit is {}", upcast, kMaxUpcastLanes));
  if (lanes > kMaxLanes) refuse(fmt::format("{} lanes in all; the limit is {}", lanes, kMaxLanes));
  if (lanes * static_cast<int64_t>(ast_->nodes().size()) > kMaxLaneNodes && lanes > 16)
    refuse(fmt::format("{} lanes of {} nodes; the limit of their product is {}", lanes,
                       ast_->nodes().size(), kMaxLaneNodes));
  return {opt.op, axis, amount};
}

void Schedule::apply(const Opt& opt) {
  auto [op, axis, amount] = checked(opt);
  switch (op) {
    case OptOp::UPCAST: split(axis, amount, AxisKind::Upcast, true); break;
    case OptOp::UNROLL: split(axis, amount, AxisKind::Unroll, true); break;
    case OptOp::THREAD: split(axis, amount, AxisKind::Thread, false); break;
  }
  applied_.push_back(opt);
}

// Cuts `amount` steps off an axis, as its inner or outer part, which gets a new kind.
void Schedule::split(int axis, int64_t amount, AxisKind kind, bool inner) {
  Axis part = axes_[static_cast<size_t>(axis)];
  int64_t rest = part.size.constant() / amount;
  Axis& kept = axes_[static_cast<size_t>(axis)];
  part.kind = kind;
  part.size = amount;
  kept.size = rest;
  if (inner) kept.stride *= amount;
  else part.stride *= rest;
  if (rest == 1) axes_.erase(axes_.begin() + axis);
  axes_.push_back(part);
  std::ranges::stable_sort(axes_, {}, [](const Axis& a) { return rank_of(a.kind); });
}

}  // namespace quern
