#include "quern/codegen/render/llvm/memory.h"

#include <algorithm>

#include "quern/codegen/render/llvm/alu.h"

namespace quern::llvm_ir {
namespace {

// Lists of scopes are quadratic in the buffers written; beyond this many nothing is said.
constexpr size_t kMaxScopes = 16;
constexpr int64_t kDummyAlign = 64;

Value address_or_dummy(Text& text, Value pointer, Value gate, const char* dummy) {
  return text.define(DType(), "select ", Typed{gate}, ", ptr ", pointer, ", ptr ",
                     Value::named(dummy));
}

// Masked accesses of narrow floats are done as integers: all of LLVM's versions can.
DType masked_storage(DType t) {
  return t.is_float() && t.bits() == 16 ? DType(Scalar::UInt16, t.lanes) : storage(t);
}

Value masked_load(Text& text, Value pointer, Value mask, Value alternative,
                  const std::string& suffix) {
  DType t = alternative.dtype, stored = masked_storage(t);
  Value loaded = text.define(stored, "call ", stored, " @llvm.masked.load(ptr ", pointer, ", i32 ",
                             t.itemsize(), ", ", Typed{mask}, ", ",
                             Typed{render_bitcast(text, alternative, stored)}, ")", suffix);
  return render_bitcast(text, loaded, t);
}

void masked_store(Text& text, Value pointer, Value mask, Value value, const std::string& suffix) {
  Value stored = render_bitcast(text, value, masked_storage(value.dtype));
  text.line("call void @llvm.masked.store(", Typed{stored}, ", ptr ", pointer, ", i32 ",
            stored.dtype.itemsize(), ", ", Typed{mask}, ")", suffix);
}

}  // namespace

AliasScopes::AliasScopes(const LinearUOps& uops) {
  size_t buffers = 0;
  for (UOp u : uops) {
    if (u->op != Op::DEFINE_GLOBAL) continue;
    ++buffers;
    if (u->args[1]) written_.push_back(u->arg);
  }
  if (buffers < 2 || written_.size() > kMaxScopes) written_.clear();
}

std::string AliasScopes::suffix(UOp buffer) const {
  if (buffer->op != Op::DEFINE_GLOBAL || written_.empty()) return {};
  auto found = std::ranges::find(written_, buffer->arg);
  if (found == written_.end()) return ", !noalias !" + std::to_string(all());
  size_t i = static_cast<size_t>(found - written_.begin());
  std::string text = ", !alias.scope !" + std::to_string(alone(i));
  if (written_.size() > 1) text += ", !noalias !" + std::to_string(others(i));
  return text;
}

void AliasScopes::define(Text& text) const {
  if (written_.empty()) return;
  size_t n = written_.size();
  auto list = [&](size_t number, auto&& includes) {
    text.put_all("!", number, " = !{");
    const char* separator = "";
    for (size_t i = 0; i < n; ++i) {
      if (!includes(i)) continue;
      text.put_all(separator, "!", scope(i));
      separator = ", ";
    }
    text.put("}\n");
  };
  text.put("\n!0 = distinct !{!0}\n");
  for (size_t i = 0; i < n; ++i)
    text.put_all("!", scope(i), " = distinct !{!", scope(i), ", !0}\n");
  for (size_t i = 0; i < n; ++i) list(alone(i), [&](size_t j) { return i == j; });
  for (size_t i = 0; n > 1 && i < n; ++i) list(others(i), [&](size_t j) { return i != j; });
  list(all(), [](size_t) { return true; });
}

void Dummies::require(UOp access) {
  UOp gate = access->gate();
  if (!gate || gate->lanes() > 1) return;
  bool is_load = access->op == Op::LOAD;
  DType t = is_load ? access->dtype : access->src(2)->dtype;
  int64_t bytes = (int64_t{t.itemsize()} * t.lanes + kDummyAlign - 1) / kDummyAlign * kDummyAlign;
  int64_t& needed = is_load ? zeros : sink;
  needed = std::max(needed, bytes);
}

void Dummies::define(Text& text) const {
  if (zeros) {
    text.line("%zeros = alloca <", zeros, " x i8>, align ", kDummyAlign);
    text.line("store <", zeros, " x i8> zeroinitializer, ptr %zeros, align ", kDummyAlign);
  }
  if (sink) text.line("%sink = alloca <", sink, " x i8>, align ", kDummyAlign);
}

Value render_load(Text& text, UOp u, std::span<const Value> src, Value pointer,
                  const std::string& suffix) {
  DType t = u->dtype;
  bool gated = u->gate() != nullptr;
  if (gated && u->gate()->lanes() > 1) return masked_load(text, pointer, src[2], src[3], suffix);
  if (gated) pointer = address_or_dummy(text, pointer, src[2], "zeros");
  DType stored = storage(t);
  Value v =
      text.define(stored, "load ", stored, ", ptr ", pointer, ", align ", t.itemsize(), suffix);
  if (t.is_bool()) v = render_cast(text, v, t);
  if (gated && !src[3].is_zero())
    v = text.define(t, "select ", Typed{src[2]}, ", ", Typed{v}, ", ", Typed{src[3]});
  return v;
}

void render_store(Text& text, UOp u, std::span<const Value> src, Value pointer,
                  const std::string& suffix) {
  Value v = src[2];
  bool gated = u->gate() != nullptr;
  if (gated && u->gate()->lanes() > 1) return masked_store(text, pointer, src[3], v, suffix);
  if (gated) pointer = address_or_dummy(text, pointer, src[3], "sink");
  if (v.dtype.is_bool()) v = render_cast(text, v, storage(v.dtype));
  text.line("store ", Typed{v}, ", ptr ", pointer, ", align ", v.dtype.itemsize(), suffix);
}

}  // namespace quern::llvm_ir
