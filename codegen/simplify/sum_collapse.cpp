#include "quern/codegen/simplify/sum_collapse.h"

#include <cmath>
#include <vector>

#include "quern/codegen/simplify/index_sum.h"
#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

UOp index_min(Simplifier& s, UOp a, UOp b) {
  return s.mul(s.alu(Op::MAX, {s.mul(a, -1), s.mul(b, -1)}), -1);
}

// The steps of a range that meet a condition: [lower, upper), each null if unbounded.
struct Interval {
  UOp lower = nullptr;
  UOp upper = nullptr;
};

// condition: k * range + y < c
bool narrow(Simplifier& s, UOp condition, UOp range, Interval& interval) {
  if (condition->op != Op::CMPLT || !condition->src(0)->dtype.is_index()) return false;
  IndexSum sum = to_sum(s.sub(condition->src(0), condition->src(1)));  // sum < 0
  int64_t k = 0;
  IndexSum rest;
  rest.constant = sum.constant;
  for (auto& t : sum.terms) {
    if (t.base == range) k = t.coefficient;
    else if (depends_on(t.base, range)) return false;
    else rest.terms.push_back(t);
  }
  UOp y = from_sum(s, std::move(rest));
  if (k > 0) {
    // range < -y / k, rounded up
    UOp upper = s.floordiv(s.add(s.mul(y, -1), k - 1), k);
    interval.upper = interval.upper ? index_min(s, interval.upper, upper) : upper;
  } else if (k < 0) {
    // range > y / -k
    UOp lower = s.add(s.floordiv(y, -k), 1);
    interval.lower = interval.lower ? s.alu(Op::MAX, {interval.lower, lower}) : lower;
  }
  return k != 0;
}

// No steps sum to 0 even of an infinite or NaN value.
UOp times(Simplifier& s, UOp count, UOp value) {
  UOp product = s.mul(value, s.cast(count, value->dtype.element()));
  bool finite = value->is_const() && std::isfinite(bits_float(value->arg));
  if (!value->dtype.is_float() || finite || count->vmin > 0) return product;
  return s.where(s.less(s.graph().index(0), count), product, s.graph().constant(value->dtype, 0));
}

UOp count_where(Simplifier& s, UOp condition, UOp range, UOp a, UOp b) {
  UOp size = range->src(0), zero = s.graph().index(0), outside = nullptr;
  Interval interval;
  std::vector<UOp> conjuncts = {condition};
  while (!conjuncts.empty()) {
    UOp c = conjuncts.back();
    conjuncts.pop_back();
    if (c->op == Op::AND) conjuncts.insert(conjuncts.end(), {c->src(0), c->src(1)});
    else if (!depends_on(c, range)) outside = outside ? s.both(outside, c) : c;
    else if (!narrow(s, c, range, interval)) return nullptr;
  }
  UOp upper = interval.upper ? index_min(s, interval.upper, size) : size;
  UOp lower = interval.lower ? s.alu(Op::MAX, {interval.lower, zero}) : zero;
  UOp count = s.alu(Op::MAX, {s.sub(upper, lower), zero});
  if (outside) count = s.where(outside, count, zero);
  UOp sum = times(s, count, a);
  if (b->is_const(0)) return sum;
  // Two roundings would be one too many for a float.
  return b->dtype.is_float() ? nullptr : s.add(sum, times(s, s.sub(size, count), b));
}

}  // namespace

bool depends_on(UOp u, UOp what) {
  if (u->id < what->id) return false;
  for (UOp x : reachable({&u, 1}))
    if (x == what) return true;
  return false;
}

UOp collapse_reduce(Simplifier& s, Op op, UOp value, UOp range) {
  if (!depends_on(value, range)) {
    if (op == Op::MAX) return range->src(0)->vmin >= 1 ? value : nullptr;
    if (value->dtype.is_bool()) return s.both(value, s.less(s.graph().index(0), range->src(0)));
    return times(s, range->src(0), value);
  }
  if (op != Op::ADD || value->dtype.is_bool()) return nullptr;
  if (value->op == Op::CAST && value->src(0)->dtype.is_bool()) {
    DType t = value->dtype;
    UOp one = t.is_float() ? s.graph().constant_float(t, 1) : s.graph().constant(t, 1);
    return count_where(s, value->src(0), range, one, s.graph().constant(t, 0));
  }
  if (value->op == Op::WHERE && !depends_on(value->src(1), range) &&
      !depends_on(value->src(2), range))
    return count_where(s, value->src(0), range, value->src(1), value->src(2));
  return nullptr;
}

}  // namespace quern
