#include "quern/codegen/lower/transcendental.h"

#include <algorithm>
#include <limits>

#include "quern/codegen/uop/rewrite.h"

namespace quern {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool is_transcendental(UOp u) {
  bool op = u->op == Op::EXP2 || u->op == Op::LOG2 || u->op == Op::SIN;
  return op && u->dtype.is_float() && u->dtype.bits() >= 32;
}

// The layout of float32 or float64.
struct Format {
  explicit Format(DType t)
      : wide(t.scalar == Scalar::Float64),
        mantissa(wide ? 52 : 23),
        bias(wide ? 1023 : 127),
        real(t.scalar),
        sint(wide ? Scalar::Int64 : Scalar::Int32),
        uint(wide ? Scalar::UInt64 : Scalar::UInt32) {}
  bool wide;
  int mantissa, bias;
  Scalar real, sint, uint;
};

Expr polynomial(Expr x, std::initializer_list<double> coefficients) {
  auto c = std::rbegin(coefficients);
  Expr sum = x.constant(*c);
  while (++c != std::rend(coefficients)) sum = sum * x + *c;
  return sum;
}

// (2^f - 1) / f for f in [-1/2, 1/2], with relative errors of the sum with 1 below 2^-28 and 2^-57.
Expr exp2_series(Expr f, bool wide) {
  if (!wide)
    return polynomial(f, {0x1.62e430p-1, 0x1.ebfbdcp-3, 0x1.c6aee8p-5, 0x1.3b2d4cp-7,
                          0x1.5f3e52p-10, 0x1.41fbb2p-13});
  return polynomial(f, {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c5a4p-3, 0x1.c6b08d7049fe8p-5,
                        0x1.3b2ab6fba0119p-7, 0x1.5d87fe78cd6e2p-10, 0x1.4309130ed8f26p-13,
                        0x1.ffcbfba97cb3ep-17, 0x1.62bfc79cf2c3ep-20, 0x1.b5267ce6dc264p-24,
                        0x1.e61b502d256edp-28, 0x1.e79bae7e75841p-32});
}

// log2(1 + f) in float32.
Expr log2_narrow(Expr f) {
  Expr q =
      polynomial(f, {0x1.c551dap-2, -0x1.715470p-1, 0x1.ec7096p-2, -0x1.715a76p-2, 0x1.277e38p-2,
                     -0x1.eabc88p-3, 0x1.a3059ep-3, -0x1.874bdcp-3, 0x1.7d4982p-3, -0x1.c25b30p-4});
  return f * q + f;
}

// e + log2(1 + f) in float64.
Expr log2_wide(Expr e, Expr f) {
  constexpr double kLog2eHigh = 0x1.71547p+0, kLog2eLow = 0x1.94ae0bf85ddf4p-22;
  Expr s = f / (f + 2.0);
  Expr z = s * s;
  // log(1 + f) = 2s + s r = f - (h - s (h + r))
  Expr r = z * polynomial(z, {0x1.5555555555592p-1, 0x1.999999997fdb9p-2, 0x1.24924941f1180p-2,
                              0x1.c71c520965641p-3, 0x1.74663ee6f1bd2p-3, 0x1.39a1bad95e77bp-3,
                              0x1.2f05625a35533p-3});
  Expr h = f * f * 0.5;
  // So few bits that the product with log2(e)'s upper half is exact.
  Expr high = ((f - h).bitcast(Scalar::UInt64) & ~uint64_t{0xffffffff}).bitcast(Scalar::Float64);
  Expr low = f - high - h + s * (h + r);
  Expr product = high * kLog2eHigh;
  Expr rest = (low + high) * kLog2eLow + low * kLog2eHigh;
  Expr sum = e + product;
  return sum + (rest + (e - sum + product));
}

}  // namespace

Expr expand_exp2(Expr x) {
  Format t(x.dtype());
  // Beyond these every result is 0 or infinity. A NaN passes both.
  double least = -(t.bias + t.mantissa + 1), most = t.bias + 2;
  x = where(x < least, least, x);
  x = where(most < x, most, x);
  // The last bits of `shifted` hold k + 2 bias, the sum of the two factors' exponent fields.
  double shift = (t.wide ? 0x1.8p52 : 0x1.8p23) + 2 * t.bias;
  Expr shifted = x + shift;
  Expr f = x - (shifted - shift);
  Expr power = f * exp2_series(f, t.wide) + 1.0;
  Expr field = shifted.bitcast(t.uint);
  Expr half = field >> 1;
  Expr factor = (half << t.mantissa).bitcast(t.real);
  Expr other = ((field - half) << t.mantissa).bitcast(t.real);
  return power * factor * other;
}

Expr expand_log2(Expr x) {
  Format t(x.dtype());
  Expr subnormal = x < (t.wide ? 0x1p-1022 : 0x1p-126);
  Expr scaled = where(subnormal, x * 0x1p64, x);
  Expr bits = scaled.bitcast(t.sint);
  Expr above_root = bits - (t.wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3);  // sqrt(1/2)
  Expr exponent = above_root >> t.mantissa;
  Expr m = (bits - (exponent << t.mantissa)).bitcast(t.real);
  Expr f = m - 1.0;
  Expr e =
      t.wide ? (exponent + 0x4338000000000000).bitcast(t.real) - 0x1.8p52 : exponent.cast(t.real);
  e = e + where(subnormal, x.constant(-64), x.constant(0));
  Expr log = t.wide ? log2_wide(e, f) : e + log2_narrow(f);
  Expr undefined = x.constant(std::numeric_limits<double>::quiet_NaN());
  Expr finite = where(0.0 < x, log, where(x == 0.0, -kInfinity, undefined));
  return where(x < kInfinity, finite, x);
}

UOp decompose_transcendentals(Graph& graph, UOp sink, const Target&) {
  if (!std::ranges::any_of(graph.nodes(), is_transcendental)) return sink;
  return rewrite(sink, [&](UOp u, std::span<const UOp> src) {
    if (!is_transcendental(u)) return with_src(graph, u, src);
    Expr x(graph, src[0]);
    return (u->op == Op::EXP2   ? expand_exp2(x)
            : u->op == Op::LOG2 ? expand_log2(x)
                                : expand_sin(x))
        .uop();
  });
}

}  // namespace quern
