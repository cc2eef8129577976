#include "quern/codegen/lower/linearize.h"

#include <algorithm>
#include <queue>

#include "quern/codegen/lower/loop_nest.h"
#include "quern/codegen/uop/eval.h"
#include "quern/codegen/uop/rewrite.h"

namespace quern {
namespace {

bool may_fuse(DType dtype, const Target& target) {
  bool type_has_fma = dtype.scalar == Scalar::Float32 || dtype.scalar == Scalar::Float64;
  return type_has_fma && target.contract && target.has_fma;
}

UOp accumulate(Graph& graph, Op op, UOp acc, UOp value, const Target& target) {
  if (op == Op::ADD && value->op == Op::MUL && may_fuse(value->dtype, target))
    return graph.make(Op::MULACC, value->dtype, {value->src(0), value->src(1), acc});
  return graph.make(op, value->dtype, {acc, value});
}

// What an accumulator starts with. In floats only -0 leaves every other number as it is, also -0,
// so that a sum has one sign of zero however it is unrolled; but an empty sum is 0.
int64_t start_of(Op op, DType dtype, std::span<const UOp> ranges) {
  bool is_never_empty = std::ranges::all_of(ranges, [](UOp r) { return r->src(0)->vmin > 0; });
  if (op == Op::ADD && dtype.is_float() && is_never_empty) return float_bits(-0.0);
  return reduce_identity(op, dtype);
}

// Replaces each REDUCE by the ASSIGN of an accumulator.
UOp place_accumulators(Graph& graph, UOp sink, const Target& target,
                       std::vector<LoopNest::Accumulator>& accumulators) {
  return rewrite(sink, [&](UOp u, std::span<const UOp> src) {
    if (u->op != Op::REDUCE) return with_src(graph, u, src);
    Op op = static_cast<Op>(u->arg);
    size_t n = static_cast<size_t>(u->args[0]);
    auto ranges = src.subspan(n);
    UOp start = graph.constant(u->dtype, start_of(op, u->dtype, ranges));
    UOp acc = graph.make(Op::DEFINE_ACC, u->dtype, {start}, graph.fresh());
    UOp value = acc;
    for (UOp v : src.first(n)) value = accumulate(graph, op, value, v, target);
    UOp assign = graph.make(Op::ASSIGN, u->dtype, {acc, value});
    accumulators.push_back({acc, assign, {ranges.begin(), ranges.end()}});
    return assign;
  });
}

// Puts the uops and inner loops of each loop in order: sources first, otherwise by id.
class Ordering {
 public:
  Ordering(Graph& graph, std::span<const UOp> uops, const LoopNest& nest)
      : graph_(graph), nest_(nest), loop_base_(uops.back()->id + 1) {
    size_t items = loop_base_ + static_cast<size_t>(nest.count());
    uop_.resize(loop_base_, nullptr);
    waiting_for_.resize(items, 0);
    users_.resize(items);
    members_.resize(static_cast<size_t>(nest.count()) + 1);
    for (UOp u : uops) {
      if (u->op == Op::SINK) continue;
      uop_[u->id] = u;
      if (u->op != Op::RANGE) members_of(nest.loop_of(u)).push_back(u->id);
      for (UOp s : u->src()) add_edge(s, u);
    }
    for (int loop = 0; loop < nest.count(); ++loop)
      members_of(nest.parent(loop)).push_back(item_of(loop));
    order_loads_before_stores(uops);
  }

  void emit(int loop, LinearUOps& out) {
    auto later = [this](size_t a, size_t b) { return priority(a) > priority(b); };
    std::priority_queue<size_t, std::vector<size_t>, decltype(later)> ready(later);
    for (size_t item : members_of(loop))
      if (waiting_for_[item] == 0) ready.push(item);
    while (!ready.empty()) {
      size_t item = ready.top();
      ready.pop();
      if (item < loop_base_) {
        out.push_back(uop_[item]);
      } else {
        int inner = static_cast<int>(item - loop_base_);
        UOp range = nest_.range(inner);
        out.push_back(range);
        emit(inner, out);
        out.push_back(graph_.make(Op::END, Scalar::Void, {range}));
      }
      for (size_t user : users_[item])
        if (--waiting_for_[user] == 0) ready.push(user);
    }
  }

 private:
  size_t item_of(int loop) const { return loop_base_ + static_cast<size_t>(loop); }
  std::vector<size_t>& members_of(int loop) { return members_[static_cast<size_t>(loop + 1)]; }
  uint32_t priority(size_t item) const {
    return item < loop_base_ ? static_cast<uint32_t>(item)
                             : nest_.range(static_cast<int>(item - loop_base_))->id;
  }
  int depth(int loop) const {
    int n = 0;
    for (; loop >= 0; loop = nest_.parent(loop)) ++n;
    return n;
  }

  // `after` needs `before`. The edge is between those items of their innermost common loop in which
  // they lie.
  void add_edge(UOp before, UOp after) {
    int a = nest_.loop_of(before), b = nest_.loop_of(after);
    size_t from = before->id, to = after->id;
    auto climb = [&](int& loop, size_t& item) {
      item = item_of(loop);
      loop = nest_.parent(loop);
    };
    for (int da = depth(a), db = depth(b); a != b; da = depth(a), db = depth(b)) {
      if (da >= db) climb(a, from);
      else climb(b, to);
    }
    // A RANGE stands at the head of its own loop.
    if (from == to || (from < loop_base_ && uop_[from]->op == Op::RANGE)) return;
    if (to < loop_base_ && after->op == Op::RANGE) to = item_of(b);
    users_[from].push_back(to);
    ++waiting_for_[to];
  }

  // In-place kernels: what is read is the content from before the launch.
  void order_loads_before_stores(std::span<const UOp> uops) {
    std::vector<UOp> loads;
    for (UOp u : uops)
      if (u->op == Op::LOAD && u->src(0)->op == Op::DEFINE_GLOBAL && u->src(0)->args[1])
        loads.push_back(u);
    if (loads.empty()) return;
    for (UOp store : uops) {
      if (store->op != Op::STORE) continue;
      for (UOp load : loads)
        if (load->src(0) == store->src(0)) add_edge(load, store);
    }
  }

  Graph& graph_;
  const LoopNest& nest_;
  size_t loop_base_;  // items below are uops by id, from here on loops
  std::vector<UOp> uop_;
  std::vector<uint32_t> waiting_for_;
  std::vector<std::vector<size_t>> users_;
  std::vector<std::vector<size_t>> members_;
};

}  // namespace

LinearUOps linearize(Graph& graph, UOp sink, const Target& target) {
  std::vector<LoopNest::Accumulator> accumulators;
  sink = place_accumulators(graph, sink, target, accumulators);
  // A loop may repeat a value that does not depend on it, so RANGEs are roots too.
  std::vector<UOp> roots = {sink};
  for (const LoopNest::Accumulator& a : accumulators)
    roots.insert(roots.end(), a.ranges.begin(), a.ranges.end());
  std::vector<UOp> uops = reachable(roots);
  LoopNest nest(uops, accumulators);
  LinearUOps out;
  Ordering(graph, uops, nest).emit(-1, out);
  return out;
}

}  // namespace quern
