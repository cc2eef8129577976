#include <algorithm>
#include <vector>

#include "quern/codegen/render/llvm/alu.h"
#include "quern/codegen/render/llvm/memory.h"

namespace quern::llvm_ir {
namespace {

// `lane(i)` is the number of the lane of (a, b) that becomes lane i, or less than 0 for any.
template <class F>
Value shuffle(Text& text, Value a, Value b, int lanes, F&& lane) {
  DType t = a.dtype.with_lanes(lanes);
  Value result = text.fresh(t);
  text.put_all("  ", result, " = shufflevector ", Typed{a}, ", ", Typed{b}, ", <", lanes,
               " x i32> ");
  bool all_first = true;
  for (int i = 0; i < lanes; ++i) all_first &= lane(i) == 0;
  if (all_first) {
    text.put("zeroinitializer\n");
    return result;
  }
  for (int i = 0; i < lanes; ++i) {
    text.put(i ? ", " : "<");
    int64_t from = lane(i);
    if (from < 0) text.put("i32 poison");
    else text.put_all("i32 ", from);
  }
  text.put(">\n");
  return result;
}

Value insert(Text& text, Value vector, Value lane, int at) {
  return text.define(vector.dtype, "insertelement ", Typed{vector}, ", ", Typed{lane}, ", i64 ",
                     at);
}

// A vector of which only the first `lanes` mean something.
struct Part {
  Value value;
  int lanes;
};

Value widen(Text& text, Part p, int lanes) {
  if (p.value.dtype.lanes == lanes) return p.value;
  return shuffle(text, p.value, Value::poison(p.value.dtype), lanes,
                 [&](int i) { return i < p.lanes ? i : -1; });
}

Part concat(Text& text, Part a, Part b) {
  int wide = std::max(a.value.dtype.lanes, b.value.dtype.lanes), n = a.lanes + b.lanes;
  Value first = widen(text, a, wide), second = widen(text, b, wide);
  auto lane = [&](int i) { return i < a.lanes ? i : wide + i - a.lanes; };
  return {shuffle(text, first, second, n, lane), n};
}

// The constants as one vector, into which the other lanes are inserted.
Value from_scalars(Text& text, UOp u, std::span<const Value> src) {
  std::vector<int64_t> bits;
  for (const Value& s : src) bits.push_back(s.is_constant() ? s.n : 0);
  auto constant = [](const Value& s) { return s.is_constant(); };
  bool any = std::ranges::any_of(src, constant), all = std::ranges::all_of(src, constant);
  Value v = any ? Value::constants(u->dtype, bits) : Value::poison(u->dtype);
  // If there is no other, one of them is inserted again: the result must not depend on `bits`.
  for (size_t i = 0; i < src.size(); ++i)
    if (!src[i].is_constant() || (all && i == 0)) v = insert(text, v, src[i], static_cast<int>(i));
  return v;
}

// Pairs of neighbours at a time, so that the shuffles form a shallow tree.
Value from_vectors(Text& text, std::span<const Value> src) {
  std::vector<Part> parts;
  for (Value v : src) {
    int lanes = v.dtype.lanes;
    if (lanes == 1) v = insert(text, Value::poison(v.dtype.with_lanes(2)), v, 0);
    parts.push_back({v, lanes});
  }
  while (parts.size() > 1) {
    size_t n = 0;
    for (size_t i = 0; i < parts.size(); i += 2)
      parts[n++] = i + 1 < parts.size() ? concat(text, parts[i], parts[i + 1]) : parts[i];
    parts.resize(n);
  }
  return parts[0].value;
}

}  // namespace

Value broadcast(Text& text, Value v, int lanes) {
  DType t = v.dtype.with_lanes(lanes);
  if (v.kind == Value::Kind::Constant) return v.as(t);
  return shuffle(text, insert(text, Value::poison(t), v, 0), Value::poison(t), lanes,
                 [](int) { return 0; });
}

Value render_vectorize(Text& text, UOp u, std::span<const Value> src) {
  bool same = std::ranges::all_of(u->src(), [&](UOp s) { return s == u->src(0); });
  if (same && src[0].dtype.lanes == 1) return broadcast(text, src[0], u->lanes());
  if (src.size() == 1) return src[0];
  if (src.size() == static_cast<size_t>(u->lanes())) return from_scalars(text, u, src);
  return from_vectors(text, src);
}

Value render_gep(Text& text, UOp u, Value v) {
  int lanes = u->lanes();
  if (v.kind == Value::Kind::Constant) return v.as(u->dtype);
  if (v.dtype.lanes == 1) return lanes == 1 ? v : broadcast(text, v, lanes);
  if (lanes == 1) return text.define(u->dtype, "extractelement ", Typed{v}, ", i64 ", u->args[0]);
  bool identity = lanes == v.dtype.lanes;
  for (int i = 0; i < lanes; ++i) identity &= u->args[static_cast<size_t>(i)] == i;
  if (identity) return v;
  return shuffle(text, v, Value::poison(v.dtype), lanes,
                 [&](int i) { return u->args[static_cast<size_t>(i)]; });
}

}  // namespace quern::llvm_ir
