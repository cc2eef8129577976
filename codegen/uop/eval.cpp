#include "quern/codegen/uop/eval.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace quern {
namespace {

// Rounds to `mantissa` explicit bits with the given least normal exponent, by scaling so that the
// last kept bit is a unit. Exact for doubles, because every step is.
double round_mantissa(double x, int mantissa, int min_exponent, double max_finite) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = std::max(std::ilogb(x), min_exponent);
  double unit = std::ldexp(1.0, exponent - mantissa);
  double rounded = std::nearbyint(x / unit) * unit;
  if (std::fabs(rounded) > max_finite) return std::copysign(INFINITY, x);
  return rounded;
}

uint64_t small_float_bits(double x, int mantissa, int exponent_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1;
  uint64_t sign = std::signbit(x) ? uint64_t{1} << (mantissa + exponent_bits) : 0;
  uint64_t top = ((uint64_t{1} << exponent_bits) - 1) << mantissa;
  if (std::isnan(x)) return sign | top | (uint64_t{1} << (mantissa - 1));
  if (std::isinf(x)) return sign | top;
  if (x == 0) return sign;
  int exponent = std::max(std::ilogb(x), 1 - bias);
  auto scaled = static_cast<uint64_t>(std::ldexp(std::fabs(x), mantissa - exponent));
  // A subnormal has no implicit bit, so its exponent field stays 0.
  return sign + (static_cast<uint64_t>(exponent + bias - 1) << mantissa) + scaled;
}

double small_float(uint64_t bits, int mantissa, int exponent_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1;
  uint64_t fraction = bits & ((uint64_t{1} << mantissa) - 1);
  int exponent = static_cast<int>(bits >> mantissa) & ((1 << exponent_bits) - 1);
  double sign = bits >> (mantissa + exponent_bits) & 1 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction ? std::copysign(NAN, sign) : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(fraction), 1 - bias - mantissa);
  return sign * std::ldexp(static_cast<double>(fraction | uint64_t{1} << mantissa),
                           exponent - bias - mantissa);
}

template <class T>
T max_nan(T a, T b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : a < b ? b : a;
}

double eval_float(Op op, DType type, double a, double b, double c) {
  switch (op) {
    case Op::NEG: return -a;
    case Op::EXP2: return std::exp2(a);
    case Op::LOG2: return std::log2(a);
    case Op::SIN: return std::sin(a);
    case Op::SQRT: return std::sqrt(a);
    case Op::TRUNC: return std::trunc(a);
    case Op::ADD: return a + b;
    case Op::SUB: return a - b;
    case Op::MUL: return a * b;
    case Op::DIV: return a / b;
    case Op::MOD: return std::fmod(a, b);
    case Op::MAX: return max_nan(a, b);
    // Through double, float's fused result would be rounded twice.
    case Op::MULACC:
      return type.scalar == Scalar::Float64 ? std::fma(a, b, c)
             : type.scalar == Scalar::Float32
                 ? static_cast<double>(std::fmaf(static_cast<float>(a), static_cast<float>(b),
                                                 static_cast<float>(c)))
                 : round_to(type, a * b) + c;
    default: throw std::logic_error("no float form of this op");
  }
}

template <class T>  // int64_t or uint64_t: the widened operands
T divide(T a, T b, T& remainder) {
  remainder = 0;
  if (b == 0) return 0;
  if constexpr (std::is_signed_v<T>)
    if (b == -1) return static_cast<T>(0 - static_cast<uint64_t>(a));
  remainder = a % b;
  return a / b;
}

template <class T>
int64_t eval_int(Op op, int bits, T a, T b, T c) {
  uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  T remainder;
  switch (op) {
    case Op::NEG: return static_cast<int64_t>(0 - ua);
    case Op::ADD: return static_cast<int64_t>(ua + ub);
    case Op::SUB: return static_cast<int64_t>(ua - ub);
    case Op::MUL: return static_cast<int64_t>(ua * ub);
    case Op::MULACC: return static_cast<int64_t>(ua * ub + static_cast<uint64_t>(c));
    case Op::DIV: return static_cast<int64_t>(divide(a, b, remainder));
    case Op::MOD: divide(a, b, remainder); return static_cast<int64_t>(remainder);
    case Op::FLOORDIV: {
      T quotient = divide(a, b, remainder);
      return static_cast<int64_t>(quotient) - (remainder != 0 && (remainder < 0) != (b < 0));
    }
    case Op::FLOORMOD:
      divide(a, b, remainder);
      return static_cast<int64_t>(remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b
                                                                               : remainder);
    case Op::MAX: return static_cast<int64_t>(a < b ? b : a);
    case Op::XOR: return static_cast<int64_t>(ua ^ ub);
    case Op::AND: return static_cast<int64_t>(ua & ub);
    case Op::OR: return static_cast<int64_t>(ua | ub);
    case Op::SHL: return ub < static_cast<uint64_t>(bits) ? static_cast<int64_t>(ua << ub) : 0;
    case Op::SHR:
      return static_cast<int64_t>(a >> (ub < static_cast<uint64_t>(bits) ? ub : bits - 1));
    default: throw std::logic_error("no integer form of this op");
  }
}

int64_t eval_bool(Op op, bool a, bool b, bool c) {
  switch (op) {
    case Op::NEG: return !a;
    case Op::ADD:
    case Op::MAX:
    case Op::OR: return a || b;
    case Op::MUL:
    case Op::AND: return a && b;
    case Op::SUB:
    case Op::XOR: return a != b;
    case Op::MULACC: return (a && b) || c;
    case Op::DIV:
    case Op::FLOORDIV: return a && b;  // as integers of one bit: x/0 = 0
    case Op::MOD:
    case Op::FLOORMOD: return 0;
    default: throw std::logic_error("no bool form of this op");
  }
}

int64_t saturate(DType to, double x) {
  if (std::isnan(x)) return 0;
  x = std::trunc(x);
  if (to.scalar == Scalar::UInt64) {
    if (x <= 0) return 0;
    if (x >= 0x1p64) return -1;
    return static_cast<int64_t>(static_cast<uint64_t>(x));
  }
  if (x <= static_cast<double>(to.min_int())) return to.min_int();
  if (x >= static_cast<double>(to.max_int())) return to.max_int();
  return static_cast<int64_t>(x);
}

// An integer converted to a narrow float through double would be rounded twice. Where that matters
// (above 2^53), the low bits are first folded into one sticky bit.
double int_to_float(DType from, DType to, int64_t v) {
  bool is_uint64 = from.scalar == Scalar::UInt64;
  if (to.scalar == Scalar::Float64)
    return is_uint64 ? static_cast<double>(static_cast<uint64_t>(v)) : static_cast<double>(v);
  bool negative = !is_uint64 && v < 0;
  uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  if (magnitude >> 53) magnitude = (magnitude & ~uint64_t{0x7ff}) | (magnitude & 0x7ff ? 0x800 : 0);
  double d = static_cast<double>(magnitude);
  return round_to(to, negative ? -d : d);
}

int64_t eval_cast(DType from, DType to, int64_t v) {
  if (to == from) return v;
  if (from.is_float()) {
    double x = bits_float(v);
    if (to.is_float()) return float_bits(round_to(to, x));
    if (to.is_bool()) return x != 0;
    return saturate(to, x);
  }
  if (to.is_float()) return float_bits(int_to_float(from, to, v));
  if (to.is_bool()) return v != 0;
  return wrap_to(to, v);
}

bool compare(Op op, DType type, int64_t a, int64_t b) {
  if (type.is_float()) {
    double x = bits_float(a), y = bits_float(b);
    return op == Op::CMPLT ? x < y : x == y;
  }
  if (op == Op::CMPEQ) return a == b;
  if (type.is_unsigned()) return static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
  return a < b;
}

}  // namespace

int64_t float_bits(double value) { return std::bit_cast<int64_t>(value); }
double bits_float(int64_t bits) { return std::bit_cast<double>(bits); }

double round_to(DType dtype, double x) {
  switch (dtype.scalar) {
    case Scalar::Float64: return x;
    case Scalar::Float32: return static_cast<double>(static_cast<float>(x));
    case Scalar::Float16: return round_mantissa(x, 10, -14, 65504.0);
    case Scalar::BFloat16: return round_mantissa(x, 7, -126, 0x1.FEp127);
    default: throw std::logic_error("round_to: not a float type");
  }
}

int64_t wrap_to(DType dtype, int64_t v) {
  if (dtype.is_bool()) return v != 0;
  int spare = 64 - dtype.bits();
  if (spare == 0) return v;
  uint64_t shifted = static_cast<uint64_t>(v) << spare;
  return dtype.is_signed() ? static_cast<int64_t>(shifted) >> spare
                           : static_cast<int64_t>(shifted >> spare);
}

uint64_t to_storage(DType dtype, int64_t lane) {
  switch (dtype.scalar) {
    case Scalar::Float64: return static_cast<uint64_t>(lane);
    case Scalar::Float32: return std::bit_cast<uint32_t>(static_cast<float>(bits_float(lane)));
    case Scalar::Float16: return small_float_bits(bits_float(lane), 10, 5);
    case Scalar::BFloat16: return small_float_bits(bits_float(lane), 7, 8);
    default: break;
  }
  return dtype.bits() == 64 ? static_cast<uint64_t>(lane)
                            : static_cast<uint64_t>(lane) & ((uint64_t{1} << dtype.bits()) - 1);
}

int64_t from_storage(DType dtype, uint64_t bits) {
  switch (dtype.scalar) {
    case Scalar::Float64: return static_cast<int64_t>(bits);
    case Scalar::Float32:
      return float_bits(static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits))));
    case Scalar::Float16: return float_bits(small_float(bits & 0xffff, 10, 5));
    case Scalar::BFloat16: return float_bits(small_float(bits & 0xffff, 7, 8));
    default: return wrap_to(dtype, static_cast<int64_t>(bits));
  }
}

int64_t eval(Op op, DType operand, DType result, std::span<const int64_t> src) {
  operand = operand.element();
  result = result.element();
  int64_t a = src[0], b = src.size() > 1 ? src[1] : 0, c = src.size() > 2 ? src[2] : 0;
  switch (op) {
    case Op::WHERE: return a ? b : c;
    case Op::CMPLT:
    case Op::CMPEQ: return compare(op, operand, a, b);
    case Op::CAST: return eval_cast(operand, result, a);
    case Op::BITCAST: return from_storage(result, to_storage(operand, a));
    default: break;
  }
  if (result.is_float())
    return float_bits(
        round_to(result, eval_float(op, result, bits_float(a), bits_float(b), bits_float(c))));
  if (result.is_bool()) return eval_bool(op, a != 0, b != 0, c != 0);
  int64_t value = result.is_unsigned()
                      ? eval_int<uint64_t>(op, result.bits(), static_cast<uint64_t>(a),
                                           static_cast<uint64_t>(b), static_cast<uint64_t>(c))
                      : eval_int<int64_t>(op, result.bits(), a, b, c);
  return wrap_to(result, value);
}

int64_t reduce_identity(Op op, DType dtype) {
  if (op == Op::ADD) return dtype.is_float() ? float_bits(0.0) : 0;
  if (dtype.is_float()) return float_bits(-INFINITY);
  return dtype.min_int();
}

}  // namespace quern
