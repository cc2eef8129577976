#include <algorithm>

#include "quern/codegen/render/llvm/memory.h"

namespace quern::llvm_ir {

Values::Values(const LinearUOps& uops) : values_(uops.size()) {
  uint32_t last = 0;
  for (UOp u : uops) last = std::max(last, u->id);
  position_.resize(last + 1);
  for (size_t i = 0; i < uops.size(); ++i) position_[uops[i]->id] = static_cast<uint32_t>(i);
}

Addresses::Addresses(const LinearUOps& uops, Text& text, Values& values)
    : text_(text), values_(values), folded_(uops.size()) {
  for (UOp u : uops) folded_[values_.position(u)] = is_offset(u);
  for (UOp u : uops) {
    bool access = u->op == Op::LOAD || u->op == Op::STORE;
    for (size_t i = 0; i < u->nsrc; ++i)
      if (!(access && i == 1)) folded_[values_.position(u->src(i))] = false;
  }
}

// A sum with a constant that is exact, so that it may as well be done in the width of a pointer.
bool Addresses::is_offset(UOp u) {
  if (u->op != Op::ADD || !u->dtype.is_signed() || u->lanes() > 1 || !u->src(1)->is_const())
    return false;
  int64_t lo, hi, constant = u->src(1)->arg;
  bool wraps = __builtin_add_overflow(u->src(0)->vmin, constant, &lo) ||
               __builtin_add_overflow(u->src(0)->vmax, constant, &hi);
  return !wraps && lo >= u->dtype.min_int() && hi <= u->dtype.max_int();
}

Value Addresses::to_int64(UOp index) {
  DType wide(Scalar::Int64);
  Value v = values_[index];
  if (v.is_constant() || v.dtype.bits() == 64) return v.as(wide);
  const char* extend = index->vmin >= 0 ? "zext nneg " : v.dtype.is_signed() ? "sext " : "zext ";
  return text_.define(wide, extend, Typed{v}, " to ", wide);
}

Value Addresses::advance(Value pointer, Value offset, DType type, bool in_bounds) {
  if (offset.is_zero()) return pointer;
  return text_.define(DType(), "getelementptr ", in_bounds ? "inbounds " : "", storage(type),
                      ", ptr ", pointer, ", ", Typed{offset});
}

Value Addresses::element(UOp buffer, UOp index, DType type, bool in_bounds) {
  uint64_t key = (uint64_t{values_.position(buffer)} << 32 | values_.position(index)) * 64 +
                 static_cast<uint64_t>(type.scalar);
  auto [found, is_new] = pointers_.try_emplace(key);
  if (is_new) {
    made_.push_back(key);
    found->second = advance(values_[buffer], to_int64(index), type, in_bounds);
  }
  return found->second;
}

// Only the address of an access that happens is known to lie in its buffer, and that of element x
// only if it lies between the buffer's start and that address.
Value Addresses::of(UOp access, DType type) {
  UOp buffer = access->src(0), index = access->src(1);
  bool in_bounds = !access->gate();
  if (!is_offset(index)) return element(buffer, index, type, in_bounds);
  int64_t constant = index->src(1)->arg;
  in_bounds &= constant >= 0 && index->src(0)->vmin >= 0;
  Value base = element(buffer, index->src(0), type, in_bounds);
  return advance(base, Value::constant(Scalar::Int64, constant), type, in_bounds);
}

void Addresses::close_scope() {
  for (; made_.size() > marks_.back(); made_.pop_back()) pointers_.erase(made_.back());
  marks_.pop_back();
}

}  // namespace quern::llvm_ir
