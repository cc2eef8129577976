#include "quern/codegen/lower/expand.h"

#include <algorithm>
#include <vector>

#include "quern/codegen/lower/expand_access.h"
#include "quern/codegen/lower/lanes.h"

namespace quern {
namespace {

class Expander {
 public:
  Expander(Simplifier& s, std::span<const UOp> uops, const Target& target)
      : s_(s),
        target_(target),
        uops_(uops),
        order_(uops),
        ids_(uops.back()->id + 1),
        mask_(ids_),
        value_(ids_),
        needed_(ids_),
        access_(s, order_, mask_, target) {}

  UOp run() {
    find_masks();
    find_needed();
    for (UOp u : uops_)
      if (needed_[u->id]) value_[u->id] = visit(u);
    return value_[uops_.back()->id];
  }

 private:
  void find_masks() {
    for (UOp u : uops_) {
      LaneMask mask = 0;
      for (UOp x : u->src()) mask |= mask_[x->id];
      if (u->op == Op::LANE) mask = order_.bit(u->arg);
      if (u->op == Op::REDUCE) mask &= ~reduced_lanes(u);
      if (u->op == Op::SINK || u->op == Op::STORE || u->op == Op::BARRIER) mask = 0;
      mask_[u->id] = mask;
    }
  }

  // Addresses are taken apart by AccessExpander and need no vector form.
  void find_needed() {
    needed_[uops_.back()->id] = true;
    for (size_t i = uops_.size(); i-- > 0;) {
      UOp u = uops_[i];
      if (!needed_[u->id]) continue;
      bool access = u->op == Op::LOAD || u->op == Op::STORE;
      for (size_t j = 0; j < u->nsrc; ++j)
        if (!access || j != 1) needed_[u->src(j)->id] = true;
    }
  }

  LaneMask reduced_lanes(UOp reduce) const {
    LaneMask mask = 0;
    for (size_t i = 1; i < reduce->args.size(); i += 2) mask |= order_.bit(reduce->args[i]);
    return mask;
  }

  // How often each step is repeated along unrolled axes that the values do not depend on.
  int64_t repeats(UOp reduce, LaneMask all) const {
    int64_t n = 1;
    for (size_t i = 1; i < reduce->args.size(); i += 2)
      if (!(order_.bit(reduce->args[i]) & all)) n *= reduce->args[i + 1];
    return n;
  }

  // The value of an old node with the lanes of `mask`, of which its own are a subset.
  UOp lanes_of(UOp u, LaneMask mask) {
    UOp value = value_[u->id];
    LaneMask own = mask_[u->id];
    if (own == mask) return value;
    if (own == 0) return s_.broadcast(value, order_.lanes(mask));
    return s_.gep(value, order_.map(own, mask));
  }

  UOp visit(UOp u) {
    switch (u->op) {
      case Op::LANE: return position_constants(u);
      case Op::LOAD: return load(u);
      case Op::STORE: return nullptr;  // by its SINK or BARRIER, as several
      case Op::BARRIER: return barrier(u);
      case Op::REDUCE: return reduce(u);
      case Op::SINK: return sink(u);
      default: break;
    }
    LaneMask mask = mask_[u->id];
    std::vector<UOp> src;
    for (UOp x : u->src()) src.push_back(lanes_of(x, mask));
    return s_.make(u->op, u->dtype.with_lanes(order_.lanes(mask)), src, u->arg, u->args);
  }

  UOp position_constants(UOp lane) {
    std::vector<int64_t> positions(static_cast<size_t>(lane->args[0]));
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
    return s_.graph().make(Op::VCONST, lane->dtype.with_lanes(static_cast<int>(positions.size())),
                           std::span<const UOp>(), 0, positions);
  }

  UOp load(UOp u) {
    UOp gate = u->gate() ? lanes_of(u->gate(), mask_[u->id]) : nullptr;
    return access_.load(u, gate, u->barrier() ? value_[u->barrier()->id] : nullptr);
  }

  UOp sink(UOp u) {
    std::vector<UOp> stores;
    for (UOp store : u->src()) add_stores(store, stores);
    return s_.graph().make(Op::SINK, Scalar::Void, stores);
  }

  UOp barrier(UOp u) {
    std::vector<UOp> src;
    size_t n = static_cast<size_t>(u->args[0]);
    for (UOp x : u->src().first(n)) {
      if (x->op == Op::STORE) add_stores(x, src);
      else src.push_back(value_[x->id]);
    }
    auto before = static_cast<int64_t>(src.size());
    for (UOp x : u->src().subspan(n)) src.push_back(value_[x->id]);
    return s_.graph().make(Op::BARRIER, Scalar::Void, src, 0, {&before, 1});
  }

  void add_stores(UOp store, std::vector<UOp>& stores) {
    LaneMask mask = 0;
    for (UOp x : store->src()) mask |= mask_[x->id];
    UOp gate = store->gate() ? lanes_of(store->gate(), mask) : nullptr;
    UOp barrier = store->barrier() ? value_[store->barrier()->id] : nullptr;
    access_.store(store, lanes_of(store->src(2), mask), gate, barrier, mask, stores);
  }

  UOp repeat(UOp value, Op op, int64_t times) {
    if (op != Op::ADD || times == 1) return value;
    DType t = value->dtype;
    UOp factor = t.is_float() ? s_.graph().constant_float(t, static_cast<double>(times))
                              : s_.cast(s_.graph().constant(DType(Scalar::Index, t.lanes), times),
                                        t.element());
    return s_.mul(value, factor);
  }

  UOp reduce(UOp u) {
    Op op = static_cast<Op>(u->arg);
    LaneMask reduced = reduced_lanes(u), all = 0;
    for (UOp v : u->reduce_values()) all |= mask_[v->id];
    int64_t times = repeats(u, all);
    reduced &= all;

    // Lanes along the fastest axis may be summed after the loop: the accumulator is then a vector.
    LaneMask late = reduced & order_.fastest();
    bool has_loop = !u->reduce_ranges().empty();
    int budget = target_.alu_lanes(u->dtype) * std::max(1, target_.vector_registers / 2);
    if (order_.lanes((all & ~reduced) | late) > budget || target_.alu_lanes(u->dtype) == 1)
      late = 0;
    LaneMask early = reduced & ~late;

    std::vector<UOp> parts;
    for (UOp v : u->reduce_values()) {
      UOp value = lanes_of(v, all);
      for (int64_t i = 0; i < order_.lanes(early); ++i)
        parts.push_back(
            repeat(early ? s_.gep(value, order_.select(all, early, i)) : value, op, times));
    }
    UOp result;
    if (has_loop) {
      std::vector<UOp> src = parts;
      for (UOp r : u->reduce_ranges()) src.push_back(value_[r->id]);
      int64_t n = static_cast<int64_t>(parts.size());
      result = s_.make(Op::REDUCE, parts[0]->dtype, src, u->arg, std::span<const int64_t>(&n, 1));
    } else {
      result = parts[0];
      for (size_t i = 1; i < parts.size(); ++i) result = s_.alu(op, {result, parts[i]});
    }
    return late ? fold_fastest(result, op, order_.lanes(late)) : result;
  }

  // Sums `n` neighbouring lanes into one, by halves.
  UOp fold_fastest(UOp value, Op op, int64_t n) {
    while (n > 1) {
      int64_t half = (n + 1) / 2, groups = value->lanes() / n;
      std::vector<int64_t> low, high;
      for (int64_t g = 0; g < groups; ++g)
        for (int64_t i = 0; i < half; ++i) {
          low.push_back(g * n + i);
          if (half + i < n) high.push_back(g * n + half + i);
        }
      if (low.size() == high.size()) {
        value = s_.alu(op, {s_.gep(value, low), s_.gep(value, high)});
        n = half;
      } else {
        value = fold_odd(value, op, n, groups);
        --n;
      }
    }
    return value;
  }

  // Adds the last of each group of n lanes to the first one.
  UOp fold_odd(UOp value, Op op, int64_t n, int64_t groups) {
    std::vector<UOp> lanes;
    for (int64_t g = 0; g < groups; ++g)
      for (int64_t i = 0; i + 1 < n; ++i) {
        int64_t at = g * n + i, last = g * n + n - 1;
        UOp lane = s_.gep(value, {&at, 1});
        lanes.push_back(i == 0 ? s_.alu(op, {lane, s_.gep(value, {&last, 1})}) : lane);
      }
    return s_.concat(lanes);
  }

  Simplifier& s_;
  const Target& target_;
  std::span<const UOp> uops_;
  LaneOrder order_;
  size_t ids_;
  std::vector<LaneMask> mask_;
  std::vector<UOp> value_;
  std::vector<bool> needed_;
  AccessExpander access_;
};

}  // namespace

UOp expand(Simplifier& s, UOp sink, const Target& target) {
  std::vector<UOp> uops = reachable({&sink, 1});
  return Expander(s, uops, target).run();
}

}  // namespace quern
