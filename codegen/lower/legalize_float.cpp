#include "quern/codegen/lower/legalize_float.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "quern/codegen/uop/expr.h"
#include "quern/codegen/uop/rewrite.h"

namespace quern {
namespace {

constexpr uint32_t kSign = 0x80000000, kInfinity = 0x7f800000, kNaN = 0x7fc00000;

bool is_half(DType t) { return t.scalar == Scalar::Float16 || t.scalar == Scalar::BFloat16; }
DType widen(DType t) { return is_half(t) ? DType(Scalar::Float32, t.lanes) : t; }

// The bits of a float32 rounded to bfloat16, in the upper half; the lower half is to be ignored.
// Adding just less than half a unit, or half of one above an odd bit, carries into what is kept
// exactly when rounding to even goes up, into the exponent and to infinity too.
Expr bfloat16_bits(Expr x) {
  Expr bits = x.bitcast(Scalar::UInt32);
  Expr rounded = bits + ((bits >> 16 & 1) + 0x7fff);
  return where(x == x, rounded, kNaN);
}

// A float32 rounded to float16: to a multiple of its unit there, by adding and taking away a power
// of two so large that float32's last bit is that unit. What this gives is meaningless, for lack of
// such a power, only where the result is infinite.
Expr round_to_float16(Expr x) {
  Expr bits = x.bitcast(Scalar::UInt32);
  Expr magnitude = (bits & ~kSign).bitcast(Scalar::Float32);
  Expr exponent = max(bits & kInfinity, bits.constant(0x38800000));  // subnormals: that of 2^-14
  Expr power = (exponent + (13u << 23)).bitcast(Scalar::Float32);
  Expr rounded = magnitude + power - power;
  constexpr double kMost = 0x1.ffdffep15;  // what rounds to 65504
  rounded = where(kMost < magnitude, std::numeric_limits<double>::infinity(), rounded);
  return (rounded.bitcast(Scalar::UInt32) | (bits & kSign)).bitcast(Scalar::Float32);
}

// float16's bits, as uint16, of a float32 that equals one.
Expr float16_to_bits(Expr x) {
  Expr bits = x.bitcast(Scalar::UInt32);
  Expr magnitude = bits & ~kSign;
  Expr capped = where(magnitude < 0x47800000, magnitude, 0x47800000);  // 2^16 becomes infinity
  Expr normal = (capped - (112u << 23)) >> 13;
  // In units of 2^-24, that is of 0.5's last bit.
  Expr subnormal = (magnitude.bitcast(Scalar::Float32) + 0.5).bitcast(Scalar::UInt32) - 0x3f000000;
  Expr number = where(magnitude < 0x38800000, subnormal, normal);
  Expr half = where(kInfinity < magnitude, 0x7e00, number);
  return (half | (bits >> 16 & 0x8000)).cast(Scalar::UInt16);
}

// The float32 that equals a float16 given as uint16.
Expr float16_from_bits(Expr half) {
  Expr bits = half.cast(Scalar::UInt32);
  Expr magnitude = bits & 0x7fff;
  Expr moved = magnitude << 13;
  Expr normal = moved + (112u << 23);
  Expr number = where(magnitude < 0x7c00, normal, moved | kInfinity);
  Expr subnormal = (magnitude.cast(Scalar::Float32) * 0x1p-24).bitcast(Scalar::UInt32);
  Expr sign = (bits & 0x8000) << 16;
  return (where(magnitude < 0x400, subnormal, number) | sign).bitcast(Scalar::Float32);
}

// float64 to float32, rounded to odd: toward zero, then with the last bit set if anything was lost.
// The lost part can then neither make nor break a tie of a second rounding, which is as good as a
// direct one as long as it drops two bits or more (Boldo, Melquiond, "Emulation of FMA and
// correctly rounded sums", 2008).
Expr round_to_odd(Expr x) {
  Expr nearest = x.cast(Scalar::Float32);
  Expr back = nearest.cast(Scalar::Float64);
  auto magnitude = [](Expr e) {
    return e.bitcast(Scalar::Int64) & std::numeric_limits<int64_t>::max();
  };
  Expr away = (magnitude(x) < magnitude(back)).cast(Scalar::UInt32);
  Expr exact = back == x;
  Expr bits = nearest.bitcast(Scalar::UInt32);
  return where(exact, bits, (bits - away) | 1).bitcast(Scalar::Float32);
}

// Rounds an integer of at least 2^least to odd at bit `drop`.
Expr fold_low_bits(Expr v, int drop, int least) {
  int64_t unit = int64_t{1} << drop;
  Expr odd = where((v & (unit - 1)) == 0, v, (v & -unit) | unit);
  // The minimum has no magnitude, but no low bits either.
  Expr magnitude = v.dtype().is_unsigned() ? v : max(v, -v);
  return where(magnitude < int64_t{1} << least, v, odd);
}

// An integer as a float32 that rounds to bfloat16 as the integer does: rounded to odd to at most 24
// bits, but never to less than 10.
Expr integer_to_odd(Expr v) {
  if (v.dtype().bits() == 32) return fold_low_bits(v, 8, 24).cast(Scalar::Float32);
  v = fold_low_bits(v, 12, 22);
  v = fold_low_bits(v, 26, 36);
  return fold_low_bits(v, 40, 50).cast(Scalar::Float32);
}

bool within(UOp u, int64_t limit) { return u->vmin >= -limit && u->vmax <= limit; }

class FloatLegalizer {
 public:
  FloatLegalizer(Graph& graph, const Target& target)
      : graph_(graph), native_float16_(target.native_float16_cast) {}

  UOp run(UOp sink) {
    return rewrite(sink, [&](UOp u, std::span<const UOp> src) {
      UOp made = legalize(u, src);
      if (is_half(u->dtype) && made->dtype.scalar == Scalar::Float32) mark(made, u->dtype);
      return made;
    });
  }

 private:
  UOp legalize(UOp u, std::span<const UOp> src) {
    bool from_half = std::ranges::any_of(u->src(), [](UOp s) { return is_half(s->dtype); });
    if (!from_half && !is_half(u->dtype)) return with_src(graph_, u, src);
    switch (u->op) {
      case Op::DEFINE_GLOBAL:
      case Op::DEFINE_LOCAL: return u;
      case Op::LOAD: return load(u, src);
      case Op::STORE: return store(u, src);
      case Op::CAST: return cast(u->src(0)->dtype, u->dtype, expr(src[0])).uop();
      case Op::BITCAST: return bitcast(u->src(0)->dtype, u->dtype, expr(src[0])).uop();
      case Op::WMMA: return wmma(u, src);
      case Op::MULACC: {
        Expr product = round(expr(src[0]) * expr(src[1]), u->dtype);
        return round(product + expr(src[2]), u->dtype).uop();
      }
      case Op::ADD:
      case Op::SUB:
      case Op::MUL:
      case Op::DIV:
      case Op::EXP2:
      case Op::LOG2:
      case Op::SIN:
      case Op::SQRT: return round(expr(remake(u, src)), u->dtype).uop();
      default:  // the result is a half number if the sources are
        return remake(u, src);
    }
  }

  UOp remake(UOp u, std::span<const UOp> src) {
    return graph_.make(u->op, widen(u->dtype), src, u->arg, u->args);
  }

  Expr expr(UOp u) { return {graph_, u}; }

  bool keeps_type(DType half) { return half.scalar == Scalar::Float16 && native_float16_; }

  // What the legalized values are known to be representable in.
  static uint8_t mask(DType half) { return half.scalar == Scalar::Float16 ? 1 : 2; }
  void mark(UOp u, DType half) {
    if (u->id >= exact_.size()) exact_.resize(std::max<size_t>(u->id + 1, graph_.size()));
    exact_[u->id] |= mask(half);
  }
  bool is_exact(UOp u, DType half) {
    return u->id < exact_.size() && (exact_[u->id] & mask(half)) != 0;
  }

  Expr round(Expr x, DType half) {
    if (is_exact(x.uop(), half)) return x;
    if (x.uop()->is_const()) return x.constant(round_to(half, bits_float(x.uop()->arg)));
    if (half.scalar == Scalar::BFloat16)
      return (bfloat16_bits(x) & 0xffff0000).bitcast(Scalar::Float32);
    if (!native_float16_) return round_to_float16(x);
    return x.cast(Scalar::Float16).cast(Scalar::Float32);
  }

  Expr cast(DType from, DType to, Expr x) {
    if (!is_half(to)) return x.cast(to.scalar);
    if (from.scalar == Scalar::Float64) return round(round_to_odd(x), to);
    if (!from.is_float()) return integer_to_half(x, to);
    return round(x, to);
  }

  Expr integer_to_half(Expr v, DType to) {
    bool is_float16 = to.scalar == Scalar::Float16;
    if (within(v.uop(), is_float16 ? 1 << 11 : 1 << 8)) return v.cast(Scalar::Float32);
    // What float32 rounds is beyond float16's range.
    if (is_float16 || within(v.uop(), 1 << 24)) return round(v.cast(Scalar::Float32), to);
    if (v.dtype().is_index()) v = v.cast(Scalar::Int64);
    return round(integer_to_odd(v), to);
  }

  // To and from the uint16 of a half value's bits.
  Expr to_bits(Expr x, DType half) {
    if (keeps_type(half)) return to_float16(x).bitcast(Scalar::UInt16);
    if (half.scalar == Scalar::Float16) return float16_to_bits(x);
    // Rounded just now: the masking and back can be left out.
    UOp u = x.uop();
    bool masked =
        u->op == Op::BITCAST && u->src(0)->op == Op::AND && u->src(0)->src(1)->is_const(0xffff0000);
    Expr bits = masked ? expr(u->src(0)->src(0)) : x.bitcast(Scalar::UInt32);
    return (bits >> 16).cast(Scalar::UInt16);
  }

  Expr from_bits(Expr bits, DType half) {
    if (keeps_type(half)) return bits.bitcast(Scalar::Float16).cast(Scalar::Float32);
    if (half.scalar == Scalar::Float16) return float16_from_bits(bits);
    return (bits.cast(Scalar::UInt32) << 16).bitcast(Scalar::Float32);
  }

  Expr to_float16(Expr x) {
    UOp u = x.uop();
    bool widened = u->op == Op::CAST && u->src(0)->dtype.scalar == Scalar::Float16;
    return widened ? expr(u->src(0)) : x.cast(Scalar::Float16);
  }

  // To and from the type in which half values stand in memory.
  DType memory_type(DType half) {
    return DType(keeps_type(half) ? Scalar::Float16 : Scalar::UInt16, half.lanes);
  }
  Expr to_memory(Expr x, DType half) { return keeps_type(half) ? to_float16(x) : to_bits(x, half); }
  Expr from_memory(Expr x, DType half) {
    return keeps_type(half) ? x.cast(Scalar::Float32) : from_bits(x, half);
  }

  UOp load(UOp u, std::span<const UOp> src) {
    if (!is_half(u->dtype)) return with_src(graph_, u, src);
    std::vector<UOp> out(src.begin(), src.end());
    if (u->alternative()) out[3] = to_memory(expr(src[3]), u->dtype).uop();
    UOp loaded = graph_.make(Op::LOAD, memory_type(u->dtype), out, u->arg, u->args);
    return from_memory(expr(loaded), u->dtype).uop();
  }

  UOp store(UOp u, std::span<const UOp> src) {
    DType half = u->src(2)->dtype;
    if (!is_half(half)) return with_src(graph_, u, src);
    std::vector<UOp> out(src.begin(), src.end());
    out[2] = to_memory(expr(src[2]), half).uop();
    return graph_.make(Op::STORE, u->dtype, out, u->arg, u->args);
  }

  Expr bitcast(DType from, DType to, Expr x) {
    if (from == to) return x;
    Expr bits = is_half(from) ? to_bits(x, from) : x.bitcast(Scalar::UInt16);
    return is_half(to) ? from_bits(bits, to) : bits.bitcast(to.scalar);
  }

  // Its operands are half numbers as such.
  UOp wmma(UOp u, std::span<const UOp> src) {
    std::vector<UOp> out(src.begin(), src.end());
    for (size_t i = 0; i < out.size(); ++i) {
      DType type = u->src(i)->dtype;
      if (!is_half(type)) continue;
      Expr x = expr(src[i]);
      x = keeps_type(type) ? to_float16(x) : to_bits(x, type).bitcast(type.scalar);
      out[i] = x.uop();
    }
    UOp made = graph_.make(Op::WMMA, u->dtype, out, u->arg, u->args);
    if (!is_half(u->dtype)) return made;
    Expr result = expr(made);
    if (keeps_type(u->dtype)) return result.cast(Scalar::Float32).uop();
    return from_bits(result.bitcast(Scalar::UInt16), u->dtype).uop();
  }

  Graph& graph_;
  bool native_float16_;
  std::vector<uint8_t> exact_;  // by id
};

}  // namespace

UOp legalize_floats(Graph& graph, UOp sink, const Target& target) {
  bool any = std::ranges::any_of(graph.nodes(), [](UOp u) { return is_half(u->dtype); });
  return any ? FloatLegalizer(graph, target).run(sink) : sink;
}

}  // namespace quern
