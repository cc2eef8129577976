#include "quern/codegen/uop/bounds.h"

#include <algorithm>
#include <initializer_list>
#include <limits>

namespace quern {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
// Wide enough for any product of two int64. (A GNU extension that every 64-bit compiler we use
// has.)
__extension__ using Wide = __int128;

Bounds of(UOp u) { return {u->vmin, u->vmax}; }
Bounds full(DType t) { return {t.min_int(), t.max_int()}; }
int64_t saturate(Wide v) { return v < kMin ? kMin : v > kMax ? kMax : static_cast<int64_t>(v); }

// The range of a result computed exactly: an Index saturates, a fixed-width integer that could
// leave its type has wrapped and may be anything.
Bounds exact(DType t, Wide lo, Wide hi) {
  if (t.is_index()) return {saturate(lo), saturate(hi)};
  if (lo < t.min_int() || hi > t.max_int()) return full(t);
  return {static_cast<int64_t>(lo), static_cast<int64_t>(hi)};
}

// Bounds of a uint64 are only known up to INT64_MAX, where they mean "or more".
bool unbounded(DType t, Bounds b) { return t.scalar == Scalar::UInt64 && b.max == kMax; }

Bounds corners(DType t, std::initializer_list<Wide> values) {
  return exact(t, std::min(values), std::max(values));
}

Wide floor_div(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Both divisions are monotone in the dividend, and in the divisor on either side of 0, so the
// extremes lie at the corners with the divisor's ends and the values next to 0. A divisor of 0
// gives 0.
Bounds divide(Op op, DType t, Bounds a, Bounds b) {
  Wide lo = kMax, hi = kMin;
  auto visit = [&](Wide divisor) {
    if (divisor < b.min || divisor > b.max) return;
    for (Wide dividend : {Wide{a.min}, Wide{a.max}}) {
      Wide q = divisor == 0 ? 0 : op == Op::DIV ? dividend / divisor : floor_div(dividend, divisor);
      lo = std::min(lo, q);
      hi = std::max(hi, q);
    }
  };
  for (Wide divisor : {Wide{b.min}, Wide{b.max}, Wide{-1}, Wide{0}, Wide{1}}) visit(divisor);
  return exact(t, lo, hi);
}

Bounds remainder(Op op, DType t, Bounds a, Bounds b) {
  // Within one period of a constant divisor the remainder is a shifted identity.
  if (b.min == b.max && b.min != 0) {
    Wide d = b.min;
    Wide q_lo = op == Op::MOD ? Wide{a.min} / d : floor_div(a.min, d);
    Wide q_hi = op == Op::MOD ? Wide{a.max} / d : floor_div(a.max, d);
    bool one_sign = op == Op::FLOORMOD || a.min >= 0 || a.max <= 0;
    if (q_lo == q_hi && one_sign) return exact(t, a.min - q_lo * d, a.max - q_hi * d);
  }
  Wide limit =
      std::max(b.max < 0 ? -Wide{b.max} : Wide{b.max}, b.min < 0 ? -Wide{b.min} : Wide{b.min});
  limit = std::max<Wide>(limit - 1, 0);
  if (op == Op::FLOORMOD)
    return exact(t, b.min < 0 ? -limit : Wide{0}, b.max > 0 ? limit : Wide{0});
  return exact(t, a.min < 0 ? std::max<Wide>(a.min, -limit) : Wide{0},
               a.max > 0 ? std::min<Wide>(a.max, limit) : Wide{0});
}

Bounds bitwise(Op op, DType t, Bounds a, Bounds b) {
  if (a.min < 0 || b.min < 0) return full(t);
  if (op == Op::AND) return {0, std::min(a.max, b.max)};
  // No bit above the highest one of either operand can be set.
  uint64_t mask = static_cast<uint64_t>(a.max) | static_cast<uint64_t>(b.max);
  for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
  int64_t high =
      static_cast<int64_t>(mask >> 1) > t.max_int() / 2 ? t.max_int() : static_cast<int64_t>(mask);
  return {op == Op::OR ? std::max(a.min, b.min) : 0, high};
}

Bounds compare(Op op, DType operand, Bounds a, Bounds b) {
  if (operand.is_float()) return {0, 1};
  if (op == Op::CMPLT)
    return {!unbounded(operand, a) && a.max < b.min, unbounded(operand, b) || a.min < b.max};
  bool disjoint = a.max < b.min || b.max < a.min;
  bool same = a.min == a.max && a == b && !unbounded(operand, a);
  return {same, !disjoint};
}

Bounds cast(DType to, UOp src) {
  if (to.is_float()) return full(Scalar::Index);
  if (src->dtype.is_float()) return full(to);
  Bounds a = of(src);
  if (to.is_bool()) return {a.min > 0 || a.max < 0, a.min != 0 || a.max != 0};
  if (unbounded(src->dtype, a)) return full(to);
  return exact(to, a.min, a.max);
}

Bounds bool_alu(Op op, Bounds a, Bounds b) {
  switch (op) {
    case Op::NEG: return {1 - a.max, 1 - a.min};
    case Op::ADD:
    case Op::OR:
    case Op::MAX: return {a.min | b.min, a.max | b.max};
    case Op::MUL:
    case Op::AND: return {a.min & b.min, a.max & b.max};
    default: return {0, 1};
  }
}

}  // namespace

Bounds compute_bounds(Op op, DType t, std::span<const UOp> src, int64_t arg,
                      std::span<const int64_t> args) {
  Bounds all = full(t.is_float() || t.scalar == Scalar::Void ? DType(Scalar::Index) : t);
  if (t.is_float()) return all;
  switch (op) {
    case Op::CONST:
      return t.scalar == Scalar::UInt64 && arg < 0 ? Bounds{0, kMax} : Bounds{arg, arg};
    case Op::VCONST: {
      auto [lo, hi] = std::minmax_element(args.begin(), args.end());
      return t.scalar == Scalar::UInt64 && *lo < 0 ? all : Bounds{*lo, *hi};
    }
    case Op::DEFINE_VAR: return {args[0], args[1]};
    case Op::LANE: return {0, args[0] - 1};
    case Op::RANGE:
    case Op::SPECIAL: return {0, std::max<int64_t>(src[0]->vmax - 1, 0)};
    case Op::GEP: return of(src[0]);
    case Op::VECTORIZE: {
      Bounds b = of(src[0]);
      for (UOp s : src) b = {std::min(b.min, s->vmin), std::max(b.max, s->vmax)};
      return b;
    }
    case Op::WHERE:
      return {std::min(src[1]->vmin, src[2]->vmin), std::max(src[1]->vmax, src[2]->vmax)};
    case Op::CAST: return cast(t, src[0]);
    case Op::CMPLT:
    case Op::CMPEQ: return compare(op, src[0]->dtype, of(src[0]), of(src[1]));
    default: break;
  }
  if (!is_alu(op) || op == Op::BITCAST) return all;
  Bounds a = of(src[0]), b = src.size() > 1 ? of(src[1]) : Bounds{0, 0};
  if (t.is_bool()) return bool_alu(op, a, b);
  if (unbounded(t, a) || unbounded(t, b)) return all;
  Wide al = a.min, ah = a.max, bl = b.min, bh = b.max;
  switch (op) {
    case Op::NEG: return exact(t, -ah, -al);
    case Op::ADD: return exact(t, al + bl, ah + bh);
    case Op::SUB: return exact(t, al - bh, ah - bl);
    case Op::MUL: return corners(t, {al * bl, al * bh, ah * bl, ah * bh});
    case Op::MULACC: {
      Bounds p = corners(Scalar::Index, {al * bl, al * bh, ah * bl, ah * bh});
      if (p.min == kMin || p.max == kMax) return all;
      return exact(t, Wide{p.min} + src[2]->vmin, Wide{p.max} + src[2]->vmax);
    }
    case Op::DIV:
    case Op::FLOORDIV: return divide(op, t, a, b);
    case Op::MOD:
    case Op::FLOORMOD: return remainder(op, t, a, b);
    case Op::MAX: return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case Op::AND:
    case Op::OR:
    case Op::XOR: return bitwise(op, t, a, b);
    case Op::SHL: return bl == bh && bl >= 0 && bl < 63 ? corners(t, {al << bl, ah << bl}) : all;
    case Op::SHR: return bl == bh && bl >= 0 && bl < t.bits() ? exact(t, al >> bl, ah >> bl) : all;
    default: return all;
  }
}

}  // namespace quern
