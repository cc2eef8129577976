#include <bit>
#include <optional>

#include "quern/codegen/render/llvm/alu.h"

namespace quern::llvm_ir {
namespace {

class Division {
 public:
  Division(Text& text, UOp u, Value a, Value b) : text_(text), type_(u->dtype), a_(a), b_(b) {
    UOp dividend = u->src(0), divisor = u->src(1);
    bool is_signed = type_.is_signed();
    non_negative_ = !is_signed || (dividend->vmin >= 0 && divisor->vmin >= 0);
    if (divisor->vmin <= 0 && divisor->vmax >= 0) by_zero_ = compare("icmp eq ", b, 0);
    bool may_overflow = is_signed && dividend->vmin == type_.min_int() && divisor->vmin <= -1 &&
                        divisor->vmax >= -1;
    if (may_overflow) by_minus_one_ = compare("icmp eq ", b, -1);
    divisor_ = safe_divisor();
  }

  // The division by 1 in the place of those by 0 and -1 gives the dividend, still to be replaced.
  Value quotient() {
    Value q = arithmetic(non_negative_ ? "udiv " : "sdiv ", a_, divisor_);
    if (by_minus_one_) q = select(*by_minus_one_, arithmetic("sub ", constant(0), a_), q);
    if (by_zero_) q = select(*by_zero_, constant(0), q);
    return q;
  }

  // The remainder of the division by 1 is right for both.
  Value remainder() { return arithmetic(non_negative_ ? "urem " : "srem ", a_, divisor_); }

  Value floor_quotient() {
    Value q = quotient();
    if (non_negative_) return q;
    Value below = rounds_up(remainder());
    Value step = text_.define(type_, "sext ", Typed{below}, " to ", type_);
    return arithmetic("add ", q, step);
  }

  Value floor_remainder() {
    Value r = remainder();
    if (non_negative_) return r;
    Value step = select(rounds_up(r), b_, constant(0));
    return arithmetic("add ", r, step);
  }

 private:
  Value constant(int64_t n) const { return Value::constant(type_, n); }
  Value arithmetic(const char* instruction, Value x, Value y) {
    return text_.define(type_, instruction, Typed{x}, ", ", y);
  }
  Value compare(const char* instruction, Value x, int64_t n) {
    return text_.define(bool_like(type_), instruction, Typed{x}, ", ", constant(n));
  }
  Value select(Value condition, Value x, Value y) {
    return text_.define(type_, "select ", Typed{condition}, ", ", Typed{x}, ", ", Typed{y});
  }

  Value safe_divisor() {
    if (!by_zero_ && !by_minus_one_) return b_;
    Value bad = by_zero_ ? *by_zero_ : *by_minus_one_;
    if (by_zero_ && by_minus_one_)
      bad = text_.define(bad.dtype, "or ", Typed{*by_zero_}, ", ", *by_minus_one_);
    return select(bad, constant(1), b_);
  }

  // There is a remainder, of another sign than the divisor.
  Value rounds_up(Value r) {
    Value differs = compare("icmp slt ", arithmetic("xor ", r, b_), 0);
    Value inexact = compare("icmp ne ", r, 0);
    return text_.define(differs.dtype, "and ", Typed{differs}, ", ", inexact);
  }

  Text& text_;
  DType type_;
  Value a_, b_, divisor_;
  bool non_negative_ = false;  // unsigned division gives the same
  std::optional<Value> by_zero_, by_minus_one_;
};

// Divisions by 2^k that are a shift and a mask: those that round down, or that cannot tell.
std::optional<Value> by_power_of_two(Text& text, UOp u, Value a, Value b) {
  if (b.kind != Value::Kind::Constant) return std::nullopt;
  uint64_t divisor = static_cast<uint64_t>(b.n);
  bool is_power = std::has_single_bit(divisor) && (b.n > 0 || u->dtype.is_unsigned());
  bool truncates = u->op == Op::DIV || u->op == Op::MOD;
  bool may_be_negative = u->dtype.is_signed() && u->src(0)->vmin < 0;
  if (!is_power || (truncates && may_be_negative)) return std::nullopt;
  if (u->op == Op::MOD || u->op == Op::FLOORMOD) {
    Value mask = Value::constant(u->dtype, static_cast<int64_t>(divisor - 1));
    return text.define(u->dtype, "and ", Typed{a}, ", ", mask);
  }
  Value amount = Value::constant(u->dtype, std::countr_zero(divisor));
  return text.define(u->dtype, may_be_negative ? "ashr " : "lshr ", Typed{a}, ", ", amount);
}

}  // namespace

Value render_division(Text& text, UOp u, Value a, Value b) {
  if (std::optional<Value> shifted = by_power_of_two(text, u, a, b)) return *shifted;
  Division division(text, u, a, b);
  switch (u->op) {
    case Op::DIV: return division.quotient();
    case Op::MOD: return division.remainder();
    case Op::FLOORDIV: return division.floor_quotient();
    case Op::FLOORMOD: return division.floor_remainder();
    default: unexpected(u, "a division");
  }
}

}  // namespace quern::llvm_ir
