#include "quern/codegen/render/llvm/text.h"

#include <charconv>

#include "quern/codegen/uop/eval.h"

namespace quern::llvm_ir {
namespace {

const char* type_name(Scalar scalar) {
  switch (scalar) {
    case Scalar::Void: return "void";
    case Scalar::Bool: return "i1";
    case Scalar::Int8:
    case Scalar::UInt8: return "i8";
    case Scalar::Int16:
    case Scalar::UInt16: return "i16";
    case Scalar::Int32:
    case Scalar::UInt32: return "i32";
    case Scalar::Int64:
    case Scalar::UInt64:
    case Scalar::Index: return "i64";
    case Scalar::Float16: return "half";
    case Scalar::BFloat16: return "bfloat";
    case Scalar::Float32: return "float";
    case Scalar::Float64: return "double";
  }
  return "";
}

}  // namespace

void Text::put(DType t) {
  if (t.lanes == 1) return put(type_name(t.scalar));
  out_ += '<';
  put_number(t.lanes);
  out_ += " x ";
  put(type_name(t.scalar));
  out_ += '>';
}

void Text::put(Label label) {
  put(label.stem);
  if (label.number >= 0) put_number(label.number);
}

void Text::put(Mangled type) {
  if (type.dtype.lanes > 1) {
    out_ += 'v';
    put_number(type.dtype.lanes);
  }
  out_ += type.dtype.is_float() ? 'f' : 'i';
  put_number(type.dtype.bits());
}

void Text::put_number(int64_t n) {
  char digits[24];
  out_.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
}

void Text::put_hex(uint64_t bits, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out_ += "0123456789ABCDEF"[bits >> shift & 15];
}

// Float literals are bits, so that they read back exactly. Those of float are written as the double
// that they equal, which is also how a lane is kept.
void Text::put_lane(DType element, int64_t bits) {
  switch (element.scalar) {
    case Scalar::Bool: return put(bits ? "true" : "false");
    case Scalar::Float16: put("0xH"); return put_hex(to_storage(element, bits), 4);
    case Scalar::BFloat16: put("0xR"); return put_hex(to_storage(element, bits), 4);
    case Scalar::Float32:
    case Scalar::Float64: put("0x"); return put_hex(static_cast<uint64_t>(bits), 16);
    default: return put_number(bits);
  }
}

void Text::put_lanes(DType t, const int64_t* bits) {
  out_ += '<';
  for (int i = 0; i < t.lanes; ++i) {
    if (i) out_ += ", ";
    put(t.element());
    out_ += ' ';
    put_lane(t.element(), bits[i]);
  }
  out_ += '>';
}

void Text::put(const Value& v) {
  if (v.kind == Value::Kind::Constant) {
    if (v.dtype.lanes == 1) return put_lane(v.dtype, v.n);
    if (v.n == 0) return put("zeroinitializer");
    put("splat (");
    put(v.dtype.element());
    out_ += ' ';
    put_lane(v.dtype.element(), v.n);
    out_ += ')';
    return;
  }
  if (v.kind == Value::Kind::Constants) return put_lanes(v.dtype, v.lanes);
  if (v.kind == Value::Kind::Poison) return put("poison");
  out_ += '%';
  switch (v.kind) {
    case Value::Kind::Buffer: put("buf"); break;
    case Value::Kind::Scratch: put("scratch"); break;
    case Value::Kind::Variable: put("var"); break;
    case Value::Kind::Name: return put(v.name);
    default: break;
  }
  put_number(v.n);
}

}  // namespace quern::llvm_ir
