#include "quern/codegen/render/llvm/alu.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "quern/codegen/uop/eval.h"

namespace quern::llvm_ir {
namespace {

// A bound of products and sums of int64. (A GNU extension that every 64-bit compiler we use has.)
__extension__ using Wide = __int128;

// LLVM's instruction for a binary op, by the kind of its operands.
struct Binary {
  const char* floating = nullptr;
  const char* is_signed = nullptr;
  const char* is_unsigned = nullptr;
  const char* boolean = nullptr;

  const char* of(DType t) const {
    return t.is_float()    ? floating
           : t.is_bool()   ? boolean
           : t.is_signed() ? is_signed
                           : is_unsigned;
  }
};

Binary binary(Op op) {
  switch (op) {
    case Op::ADD: return {"fadd", "add", "add", "or"};
    case Op::SUB: return {"fsub", "sub", "sub", "xor"};
    case Op::MUL: return {"fmul", "mul", "mul", "and"};
    case Op::DIV: return {"fdiv", nullptr, nullptr, "and"};  // integers: render_division
    case Op::FLOORDIV: return {nullptr, nullptr, nullptr, "and"};
    case Op::MOD: return {"frem", nullptr, nullptr, nullptr};
    case Op::MAX: return {nullptr, nullptr, nullptr, "or"};
    case Op::XOR: return {nullptr, "xor", "xor", "xor"};
    case Op::AND: return {nullptr, "and", "and", "and"};
    case Op::OR: return {nullptr, "or", "or", "or"};
    case Op::SHL: return {nullptr, "shl", "shl", nullptr};
    case Op::SHR: return {nullptr, "ashr", "lshr", nullptr};
    case Op::CMPLT: return {"fcmp olt", "icmp slt", "icmp ult", "icmp ult"};
    case Op::CMPEQ: return {"fcmp oeq", "icmp eq", "icmp eq", "icmp eq"};
    default: return {};
  }
}

// " nuw nsw" as far as the operands' bounds show that the integer result does not wrap: an address
// computed in 32 bits then folds into the 64-bit one of the access.
const char* wrap_flags(UOp u) {
  DType t = u->dtype;
  if (!t.is_signed()) return "";
  Wide a0 = u->src(0)->vmin, a1 = u->src(0)->vmax, b0 = u->src(1)->vmin, b1 = u->src(1)->vmax;
  Wide lo, hi;
  switch (u->op) {
    case Op::ADD: lo = a0 + b0, hi = a1 + b1; break;
    case Op::SUB: lo = a0 - b1, hi = a1 - b0; break;
    case Op::MUL:
      lo = std::min({a0 * b0, a0 * b1, a1 * b0, a1 * b1});
      hi = std::max({a0 * b0, a0 * b1, a1 * b0, a1 * b1});
      break;
    default: return "";
  }
  if (lo < t.min_int() || hi > t.max_int()) return "";
  return a0 >= 0 && b0 >= 0 && lo >= 0 ? " nuw nsw" : " nsw";
}

Value render_binary(Text& text, UOp u, Value a, Value b) {
  const char* instruction = binary(u->op).of(a.dtype);
  if (!instruction) unexpected(u, "no such instruction");
  return text.define(u->dtype, instruction, wrap_flags(u), " ", Typed{a}, ", ", b);
}

Value render_shift(Text& text, UOp u, Value a, Value b) {
  bool in_range = b.kind == Value::Kind::Constant && b.n >= 0 && b.n < u->dtype.bits();
  if (!in_range) unexpected(u, "a shift by a constant less than the type's bits");
  return render_binary(text, u, a, b);
}

Value select(Text& text, Value condition, Value a, Value b) {
  return text.define(a.dtype, "select ", Typed{condition}, ", ", Typed{a}, ", ", Typed{b});
}

bool never_nan(Value v) { return v.kind == Value::Kind::Constant && !std::isnan(bits_float(v.n)); }

// x86's maximum instruction is `b > a ? b : a`, which gives `a` if either is a NaN; only a NaN in b
// then needs care. In a reduce b is the new value, so that the test is not on the critical path.
// (llvm.maximum also orders -0 and 0, for two instructions more.)
Value float_max(Text& text, Value a, Value b) {
  if (never_nan(a)) std::swap(a, b);
  Value greater = text.define(bool_like(a.dtype), "fcmp ogt ", Typed{b}, ", ", a);
  Value larger = select(text, greater, b, a);
  if (never_nan(b)) return larger;
  Value is_nan = text.define(bool_like(a.dtype), "fcmp uno ", Typed{b}, ", ", b);
  return select(text, is_nan, b, larger);
}

Value render_max(Text& text, UOp u, Value a, Value b) {
  if (u->dtype.is_float()) return float_max(text, a, b);
  if (u->dtype.is_bool()) return render_binary(text, u, a, b);
  const char* name = u->dtype.is_signed() ? "@llvm.smax(" : "@llvm.umax(";
  return text.define(u->dtype, "call ", u->dtype, " ", name, Typed{a}, ", ", Typed{b}, ")");
}

Value render_neg(Text& text, UOp u, Value a) {
  if (u->dtype.is_float()) return text.define(u->dtype, "fneg ", Typed{a});
  if (u->dtype.is_bool())
    return text.define(u->dtype, "xor ", Typed{a}, ", ", Value::constant(u->dtype, 1));
  return text.define(u->dtype, "sub ", Typed{Value::constant(u->dtype, 0)}, ", ", a);
}

Value call(Text& text, DType t, const char* function, Value a) {
  return text.define(t, "call ", t, " ", function, Typed{a}, ")");
}

bool has_rounding_instruction(const Target& target) {
  for (const char* feature : {"+sse4.1", "+avx", "+neon", "+fp-armv8"})
    if (target.features.find(feature) != std::string::npos) return true;
  return false;
}

// Without an instruction LLVM would call truncf. Converting to an integer and back does it for what
// has a fraction at all; for anything else its poison is not selected.
Value render_trunc(Text& text, UOp u, Value a, const Target& target) {
  DType t = u->dtype;
  if (has_rounding_instruction(target)) return call(text, t, "@llvm.trunc(", a);
  bool wide = t.scalar == Scalar::Float64;
  DType integer(wide ? Scalar::Int64 : Scalar::Int32, t.lanes);
  Value limit = Value::constant(t, float_bits(wide ? 0x1p52 : 0x1p23));
  Value magnitude = call(text, t, "@llvm.fabs(", a);
  Value has_fraction = text.define(bool_like(t), "fcmp olt ", Typed{magnitude}, ", ", limit);
  Value whole = text.define(integer, "fptosi ", Typed{a}, " to ", integer);
  Value back = text.define(t, "sitofp ", Typed{whole}, " to ", t);
  Value result = text.define(t, "call ", t, " @llvm.copysign(", Typed{back}, ", ", Typed{a}, ")");
  return select(text, has_fraction, result, a);
}

Value render_mulacc(Text& text, UOp u, std::span<const Value> src, const Target& target) {
  DType t = u->dtype;
  if (t.is_float() && target.has_fma)
    return text.define(t, "call ", t, " @llvm.fma(", Typed{src[0]}, ", ", Typed{src[1]}, ", ",
                       Typed{src[2]}, ")");
  Value product = text.define(t, binary(Op::MUL).of(t), " ", Typed{src[0]}, ", ", src[1]);
  return text.define(t, binary(Op::ADD).of(t), " ", Typed{product}, ", ", src[2]);
}

// Half and bfloat16 are computed in float32 (a pass before this one sees to it); here they are
// moved and converted only.
bool is_narrow_float(DType t) {
  return t.scalar == Scalar::Float16 || t.scalar == Scalar::BFloat16;
}

}  // namespace

void unexpected(UOp u, const char* why) {
  throw std::logic_error("render_llvm: " + std::string(name(u->op)) + " " + to_string(u->dtype) +
                         ": expected " + why);
}

Value render_alu(Text& text, UOp u, std::span<const Value> src, const Target& target) {
  switch (u->op) {
    case Op::CAST: return render_cast(text, src[0], u->dtype);
    case Op::BITCAST: return render_bitcast(text, src[0], u->dtype);
    case Op::WHERE: return select(text, src[0], src[1], src[2]);
    default: break;
  }
  if (is_narrow_float(src.back().dtype)) unexpected(u, "operands of another type");
  switch (u->op) {
    case Op::NEG: return render_neg(text, u, src[0]);
    case Op::SQRT: return call(text, u->dtype, "@llvm.sqrt(", src[0]);
    case Op::TRUNC: return render_trunc(text, u, src[0], target);
    case Op::MAX: return render_max(text, u, src[0], src[1]);
    case Op::SHL:
    case Op::SHR: return render_shift(text, u, src[0], src[1]);
    case Op::MULACC: return render_mulacc(text, u, src, target);
    case Op::DIV:
    case Op::MOD:
    case Op::FLOORDIV:
    case Op::FLOORMOD:
      if (u->dtype.is_int()) return render_division(text, u, src[0], src[1]);
      // On one bit, x/1 leaves nothing and x/0 is 0.
      if (u->dtype.is_bool() && !binary(u->op).boolean) return Value::constant(u->dtype, 0);
      return render_binary(text, u, src[0], src[1]);
    case Op::ADD:
    case Op::SUB:
    case Op::MUL:
    case Op::XOR:
    case Op::AND:
    case Op::OR:
    case Op::CMPLT:
    case Op::CMPEQ: return render_binary(text, u, src[0], src[1]);
    default: unexpected(u, "an op that LLVM has");
  }
}

}  // namespace quern::llvm_ir
