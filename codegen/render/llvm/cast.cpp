#include "quern/codegen/render/llvm/alu.h"

namespace quern::llvm_ir {
namespace {

Value convert(Text& text, const char* instruction, Value v, DType to) {
  return text.define(to, instruction, Typed{v}, " to ", to);
}

bool is_half(DType t) { return t.scalar == Scalar::Float16; }
DType float32_like(DType t) { return DType(Scalar::Float32, t.lanes); }

Value int_to_int(Text& text, Value v, DType to) {
  int from = v.dtype.bits();
  if (from == to.bits()) return v.as(to);
  if (from > to.bits()) return convert(text, "trunc ", v, to);
  return convert(text, v.dtype.is_signed() ? "sext " : "zext ", v, to);
}

// float64 to float32, rounded to odd: toward zero, with the last bit set if anything was lost. A
// second rounding, to a type of at least two bits less, is then as good as a direct one.
Value round_to_odd(Text& text, Value v) {
  DType narrow = float32_like(v.dtype), bits(Scalar::Int32, v.dtype.lanes), flag = bool_like(bits);
  Value rounded = convert(text, "fptrunc ", v, narrow);
  Value back = convert(text, "fpext ", rounded, v.dtype);
  auto magnitude = [&](Value x) {
    return text.define(x.dtype, "call ", x.dtype, " @llvm.fabs(", Typed{x}, ")");
  };
  Value inexact = text.define(flag, "fcmp one ", Typed{back}, ", ", v);
  Value away = text.define(flag, "fcmp ogt ", Typed{magnitude(back)}, ", ", magnitude(v));
  Value pattern = convert(text, "bitcast ", rounded, bits);
  Value step = convert(text, "sext ", away, bits);
  Value toward_zero = text.define(bits, "add ", Typed{pattern}, ", ", step);
  Value sticky = convert(text, "zext ", inexact, bits);
  Value odd = text.define(bits, "or ", Typed{toward_zero}, ", ", sticky);
  return convert(text, "bitcast ", odd, narrow);
}

// LLVM would call a helper to convert between half and anything but float32.
Value to_half(Text& text, Value v, DType to) {
  if (v.dtype.scalar == Scalar::Float64) v = round_to_odd(text, v);
  // An integer that float32 would round is beyond the half numbers either way.
  if (!v.dtype.is_float()) v = render_cast(text, v, float32_like(to));
  return convert(text, "fptrunc ", v, to);
}

Value float_to_float(Text& text, Value v, DType to) {
  return convert(text, v.dtype.bits() < to.bits() ? "fpext " : "fptrunc ", v, to);
}

Value float_to_int(Text& text, Value v, DType to) {
  if (to.is_bool())
    return text.define(to, "fcmp une ", Typed{v}, ", ", Value::constant(v.dtype, 0));
  const char* name = to.is_signed() ? "@llvm.fptosi.sat." : "@llvm.fptoui.sat.";
  // The one intrinsic whose types the reader of the text cannot tell from the arguments.
  return text.define(to, "call ", to, " ", name, Mangled{to}, ".", Mangled{v.dtype}, "(", Typed{v},
                     ")");
}

}  // namespace

Value render_cast(Text& text, Value v, DType to) {
  DType from = v.dtype;
  if (from == to) return v;
  if (is_half(to)) return to_half(text, v, to);
  if (is_half(from)) {
    Value wide = convert(text, "fpext ", v, float32_like(from));
    return render_cast(text, wide, to);
  }
  if (from.is_float())
    return to.is_float() ? float_to_float(text, v, to) : float_to_int(text, v, to);
  if (to.is_float()) return convert(text, from.is_signed() ? "sitofp " : "uitofp ", v, to);
  if (to.is_bool()) return text.define(to, "icmp ne ", Typed{v}, ", ", Value::constant(from, 0));
  if (from.is_bool()) return convert(text, "zext ", v, to);
  return int_to_int(text, v, to);
}

// A bool's bits are those of its byte in memory.
Value render_bitcast(Text& text, Value v, DType to) {
  if (v.dtype == to) return v;
  if (v.dtype.is_int() && to.is_int()) return v.as(to);
  if (v.dtype.is_bool() || to.is_bool()) return render_cast(text, v, to);
  return convert(text, "bitcast ", v, to);
}

}  // namespace quern::llvm_ir
