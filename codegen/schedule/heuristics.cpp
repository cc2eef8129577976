#include <algorithm>
#include <optional>
#include <random>

#include "quern/codegen/error.h"
#include "quern/codegen/schedule/schedule.h"

namespace quern {
namespace {

// Work below which a second thread costs more than it saves, in operations.
constexpr double kThreadedWork = 200'000;
constexpr int64_t kMaxTasks = 64;

bool try_apply(Schedule& s, const Opt& opt) {
  try {
    s.apply(opt);
    return true;
  } catch (const ScheduleError&) {
    return false;
  }
}

// The stride with which an access moves along an axis of the schedule, if its last view says.
std::optional<int64_t> stride_along(const Schedule& s, const AstNode& n, const Axis& axis) {
  const View& view = s.tracker(n).views().back();
  const SInt& stride = view.strides()[static_cast<size_t>(axis.base)];
  if (!stride.is_constant()) return std::nullopt;
  return stride.constant() * axis.stride;
}

bool is_access(const AstNode& n) { return n.op == Op::LOAD || n.op == Op::STORE; }

int count_accesses(const Schedule& s, const Axis& axis, int64_t stride) {
  int count = 0;
  for (const AstNode& n : s.ast().nodes())
    if (is_access(n) && stride_along(s, n, axis) == stride) ++count;
  return count;
}

// The widest vector of the kernel's element types.
int vector_lanes(const Schedule& s) {
  int bytes = 1;
  for (const AstNode& n : s.ast().nodes())
    if (!n.dtype.is_bool()) bytes = std::max(bytes, n.dtype.itemsize());
  // Half and bfloat16 are computed in float32.
  for (const AstNode& n : s.ast().nodes())
    if (n.dtype.is_float()) bytes = std::max(bytes, 4);
  return std::max(1, s.target().vector_bytes / bytes);
}

int64_t largest_divisor(int64_t size, int64_t limit) {
  for (int64_t d = std::min(size, limit); d > 1; --d)
    if (size % d == 0) return d;
  return 1;
}

// Rule: the axis along which most accesses are contiguous becomes the vector, whether it is one of
// the results (UPCAST) or of a reduce (UNROLL).
void vectorize_contiguous(Schedule& s) {
  int best = -1, best_count = 0;
  for (int i = 0; i < s.first_lane(); ++i) {
    const Axis& axis = s.axes()[static_cast<size_t>(i)];
    if (axis.kind == AxisKind::Thread || !axis.size.is_constant()) continue;
    int count = count_accesses(s, axis, 1);
    // Results win a tie: their vectors need no sum across lanes.
    if (count > best_count) {
      best = i;
      best_count = count;
    }
  }
  if (best < 0) return;
  const Axis& axis = s.axes()[static_cast<size_t>(best)];
  bool reduce = axis.kind == AxisKind::Reduce;
  int64_t size = axis.size.constant(), width = vector_lanes(s);
  int64_t amount = largest_divisor(size, width);
  bool small = s.ast().nodes().size() <= 32;
  for (int64_t wide : {width * 4, width * 2})
    if (small && size % wide == 0) {
      amount = wide;
      break;
    }
  if (amount > 1)
    try_apply(s, {reduce ? OptOp::UNROLL : OptOp::UPCAST, reduce ? best - s.first_reduce() : best,
                  amount});
}

// Rule: in a reduce, several rows of results at once reuse what is loaded for one of them.
void upcast_for_reuse(Schedule& s) {
  if (s.first_reduce() == s.first_lane() && s.space().reduced == 0) return;
  int64_t registers = s.target().vector_registers / 2;
  for (int i = s.first_reduce(); i-- > 0;) {
    const Axis& axis = s.axes()[static_cast<size_t>(i)];
    if (axis.kind != AxisKind::Global || !axis.size.is_constant()) continue;
    if (count_accesses(s, axis, 0) == 0) continue;
    int64_t vectors = std::max<int64_t>(1, s.upcast_lanes() / vector_lanes(s));
    int64_t amount =
        largest_divisor(axis.size.constant(), std::min<int64_t>(8, registers / vectors));
    if (amount > 1 && try_apply(s, {OptOp::UPCAST, i, amount})) return;
  }
}

// Rule: a short reduce needs no loop.
void unroll_short_reduce(Schedule& s) {
  for (int i = s.first_lane(); i-- > s.first_reduce();) {
    const Axis& axis = s.axes()[static_cast<size_t>(i)];
    if (!axis.size.is_constant() || axis.size.constant() > 4) return;
    if (!try_apply(s, {OptOp::UNROLL, i - s.first_reduce(), 0})) return;
  }
}

// Rule: enough work is cut into tasks along the outermost axis that divides.
void thread_outer_axis(Schedule& s) {
  SInt flops = s.ast().flops();
  double work = static_cast<double>(flops.bounds(s.ast().var_bounds()).max) +
                static_cast<double>(s.ast().bytes()) / 8;
  if (work < kThreadedWork) return;
  for (int i = 0; i < s.first_reduce(); ++i) {
    const Axis& axis = s.axes()[static_cast<size_t>(i)];
    if (!axis.size.is_constant()) continue;
    int64_t amount = largest_divisor(axis.size.constant(), kMaxTasks);
    if (amount >= 8 || (amount > 1 && amount == axis.size.constant())) {
      try_apply(s, {OptOp::THREAD, i, amount});
      return;
    }
  }
}

}  // namespace

std::vector<Opt> default_opts(const Ast& ast, const Target& target) {
  Schedule s(ast, target);
  vectorize_contiguous(s);
  upcast_for_reuse(s);
  unroll_short_reduce(s);
  if (!target.has_local) thread_outer_axis(s);
  return s.applied_opts();
}

std::vector<Opt> random_opts(const Ast& ast, const Target& target, uint64_t seed, int steps) {
  // Reductions of the raw generator by hand: the standard distributions differ between libraries.
  std::mt19937_64 random(seed);
  auto below = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  Schedule s(ast, target);
  for (int step = 0; step < steps; ++step) {
    auto op = static_cast<OptOp>(below(kOptOpCount));
    if (axis_of(op) == OptAxis::None) {
      // Leaves little to do, so rarely.
      if (below(4) == 0) try_apply(s, {op, 0, 0});
      continue;
    }
    auto [first, end] = s.axes_of(op);
    if (end <= first) continue;
    int axis = first + static_cast<int>(below(end - first));
    const Axis& chosen = s.axes()[static_cast<size_t>(axis)];
    if (!chosen.size.is_constant() || chosen.size.constant() < 2) continue;
    std::vector<int64_t> amounts = {0};
    for (int64_t d = 2; d <= std::min<int64_t>(chosen.size.constant(), 64); ++d)
      if ((chosen.size.constant() % d == 0) != (op == OptOp::PADTO)) amounts.push_back(d);
    try_apply(s, {op, axis - first,
                  amounts[static_cast<size_t>(below(static_cast<int64_t>(amounts.size())))]});
  }
  return s.applied_opts();
}

}  // namespace quern
