#include "quern/codegen/schedule/schedule.h"

#include <algorithm>
#include <utility>

#include "quern/codegen/error.h"
#include "quern/codegen/schedule/iteration_space.h"

namespace quern {
namespace {

// Where axes of a kind stand; lanes keep the order in which they were made.
AxisKind place_of(const Axis& a) { return std::min(a.kind, AxisKind::Unroll); }

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

int Schedule::first(AxisKind kind) const {
  auto at = std::ranges::find_if(axes_, [&](const Axis& a) { return a.kind >= kind; });
  return static_cast<int>(at - axes_.begin());
}

bool Schedule::has(AxisKind kind) const {
  return std::ranges::any_of(axes_, [&](const Axis& a) { return a.kind == kind; });
}

int64_t Schedule::count(AxisKind kind) const {
  int64_t n = 1;
  for (const Axis& a : axes_)
    if (a.kind == kind) n *= a.size.constant();
  return n;
}

int64_t Schedule::items() const {
  return count(AxisKind::Local) * count(AxisKind::Mid) * count(AxisKind::Group);
}

uint64_t Schedule::bases(AxisKind kind) const {
  uint64_t bits = 0;
  for (const Axis& a : axes_)
    if (a.kind == kind) bits |= uint64_t{1} << a.base;
  return bits;
}

uint64_t Schedule::padded() const {
  uint64_t bits = 0;
  for (const Axis& a : axes_) {
    const SInt& full = space_.full_shape[static_cast<size_t>(a.base)];
    if (full.is_constant() && a.size.constant() * a.stride > full.constant())
      bits |= uint64_t{1} << a.base;
  }
  return bits;
}

bool Schedule::is_in_place() const {
  return std::ranges::any_of(ast_->nodes(), [&](const AstNode& n) {
    return n.op == Op::LOAD && ast_->buffers()[n.buffer].written;
  });
}

void Schedule::apply(const Opt& opt) {
  auto [op, axis, amount] = checked(opt);
  std::vector<Axis> before = axes_;
  switch (op) {
    case OptOp::UPCAST: split(axis, amount, AxisKind::Upcast, true); break;
    case OptOp::UPCASTMID: split(axis, amount, AxisKind::Mid, true); break;
    case OptOp::UNROLL: split(axis, amount, AxisKind::Unroll, true); break;
    case OptOp::LOCAL: split(axis, amount, AxisKind::Local, true); break;
    case OptOp::GROUP: split(axis, amount, AxisKind::Group, true); break;
    case OptOp::GROUPTOP: split(axis, amount, AxisKind::Group, false); break;
    case OptOp::NOLOCALS: no_locals_ = true; break;
    case OptOp::PADTO: pad(axis, amount); break;
    case OptOp::TILE: {
      bool is_reduce = axes_[static_cast<size_t>(axis)].kind == AxisKind::Reduce;
      if (is_reduce)
        split(axis, axes_[static_cast<size_t>(axis)].size.constant() / amount, AxisKind::Block,
              false);
      else split(axis, amount, AxisKind::Tile, true);
      break;
    }
    case OptOp::THREAD: split(axis, amount, AxisKind::Thread, false); break;
  }
  try {
    check_limits(opt);
  } catch (...) {
    axes_ = std::move(before);
    throw;
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
  std::ranges::stable_sort(axes_, {}, place_of);
}

void Schedule::pad(int axis, int64_t amount) {
  SInt& size = axes_[static_cast<size_t>(axis)].size;
  size = (size.constant() + amount - 1) / amount * amount;
}

}  // namespace quern
