#include "quern/codegen/uop/uop.h"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>

#include "quern/codegen/uop/bounds.h"
#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15;
  return h ^ (h >> 32);
}

uint64_t hash(Op op, DType dtype, std::span<const UOp> src, int64_t arg,
              std::span<const int64_t> args) {
  uint64_t h =
      mix(static_cast<uint64_t>(op) << 32 | static_cast<uint64_t>(dtype.scalar) << 16 | dtype.lanes,
          static_cast<uint64_t>(arg));
  for (UOp s : src) h = mix(h, s->id);
  for (int64_t a : args) h = mix(h, static_cast<uint64_t>(a));
  return h;
}

uint64_t hash(UOp u) { return hash(u->op, u->dtype, u->src(), u->arg, u->args); }

[[noreturn]] void reject(Op op, DType dtype, std::span<const UOp> src, const char* expected) {
  std::string text = std::string(name(op)) + " " + to_string(dtype) + " (";
  for (UOp s : src) text += std::string(name(s->op)) + " " + to_string(s->dtype) + " ";
  throw std::logic_error(text + "): expected " + expected);
}

void check_alu(Op op, DType t, std::span<const UOp> src) {
  for (UOp s : src)
    if (s->lanes() != t.lanes) reject(op, t, src, "sources with as many lanes as the result");
  if (op == Op::CAST) return;
  if (op == Op::BITCAST) {
    if (src[0]->dtype.bits() != t.bits()) reject(op, t, src, "a source of the same size");
    return;
  }
  DType last = src.back()->dtype;
  if (is_compare(op) ? !t.is_bool() : t != last) reject(op, t, src, "the operands' type");
  for (size_t i = op == Op::WHERE ? 1 : 0; i < src.size(); ++i)
    if (src[i]->dtype != last) reject(op, t, src, "operands of one type");
  if (op == Op::WHERE && !src[0]->dtype.is_bool()) reject(op, t, src, "a bool condition");
}

void check(Op op, DType t, std::span<const UOp> src, std::span<const int64_t> args) {
  int arity = info(op).arity;
  if (arity >= 0 && src.size() != static_cast<size_t>(arity))
    reject(op, t, src, "another number of sources");
  for (UOp s : src)
    if (!s) throw std::logic_error(std::string(name(op)) + ": null source");
  if (is_alu(op)) return check_alu(op, t, src);
  switch (op) {
    case Op::VCONST:
      if (args.size() != t.lanes) reject(op, t, src, "a value for each lane");
      break;
    case Op::GEP:
      if (args.size() != t.lanes || src[0]->dtype.element() != t.element())
        reject(op, t, src, "a lane number for each lane");
      for (int64_t lane : args)
        if (lane < 0 || lane >= src[0]->lanes())
          reject(op, t, src, "lane numbers within the source");
      break;
    case Op::VECTORIZE: {
      int lanes = 0;
      for (UOp s : src) {
        if (s->dtype.element() != t.element()) reject(op, t, src, "sources of the result's type");
        lanes += s->lanes();
      }
      bool broadcast = src.size() == 1 && src[0]->lanes() == 1;
      if (!broadcast && lanes != t.lanes) reject(op, t, src, "lanes that add up to the result's");
      break;
    }
    case Op::LOAD:
      if (src.size() < 2 || src[1]->lanes() != 1) reject(op, t, src, "a buffer and a scalar index");
      if (src.size() >= 4 && src[3]->dtype != t)
        reject(op, t, src, "an alternative of the loaded type");
      break;
    case Op::STORE:
      if (src.size() < 3 || src[1]->lanes() != 1)
        reject(op, t, src, "a buffer, a scalar index and a value");
      break;
    case Op::REDUCE:
      for (size_t i = 0; i < src.size(); ++i)
        if (i < static_cast<size_t>(args[0]) ? src[i]->dtype != t : src[i]->op != Op::RANGE)
          reject(op, t, src, "values of the result's type, then ranges");
      break;
    default: break;
  }
}

}  // namespace

UOp Node::gate() const {
  if (op == Op::LOAD) return nsrc >= 4 ? src(2) : nullptr;
  return nsrc >= 4 && src(3)->op != Op::BARRIER ? src(3) : nullptr;
}

UOp Node::barrier() const { return src(nsrc - 1)->op == Op::BARRIER ? src(nsrc - 1) : nullptr; }

UOp Node::alternative() const { return op == Op::LOAD && nsrc >= 4 ? src(3) : nullptr; }

Graph::Graph() : table_(256) {}

void Graph::rehash() {
  table_.assign(table_.size() * 2, nullptr);
  for (UOp u : nodes_) {
    size_t slot = hash(u) & (table_.size() - 1);
    while (table_[slot]) slot = (slot + 1) & (table_.size() - 1);
    table_[slot] = u;
  }
}

UOp Graph::make(Op op, DType dtype, std::span<const UOp> src, int64_t arg,
                std::span<const int64_t> args) {
  check(op, dtype, src, args);
  size_t slot = hash(op, dtype, src, arg, args) & (table_.size() - 1);
  for (; UOp u = table_[slot]; slot = (slot + 1) & (table_.size() - 1))
    if (u->op == op && u->dtype == dtype && u->arg == arg && std::ranges::equal(u->src(), src) &&
        std::ranges::equal(u->args, args))
      return u;

  Bounds bounds = compute_bounds(op, dtype, src, arg, args);
  void* place = arena_.allocate(sizeof(Node) + src.size_bytes(), alignof(Node));
  Node* node = new (place) Node{op,
                                dtype,
                                static_cast<uint32_t>(nodes_.size()),
                                static_cast<uint32_t>(src.size()),
                                bounds.min,
                                bounds.max,
                                arg,
                                arena_.copy(args)};
  std::ranges::copy(src, reinterpret_cast<UOp*>(node + 1));
  table_[slot] = node;
  nodes_.push_back(node);
  if (nodes_.size() * 2 > table_.size()) rehash();
  return node;
}

UOp Graph::constant(DType dtype, int64_t bits) { return make(Op::CONST, dtype, {}, bits); }

UOp Graph::constant_float(DType dtype, double value) {
  return constant(dtype, float_bits(round_to(dtype, value)));
}

std::vector<UOp> reachable(std::span<const UOp> roots) {
  uint32_t last = 0;
  for (UOp r : roots) last = std::max(last, r->id);
  std::vector<UOp> by_id(last + 1, nullptr);
  std::vector<UOp> stack;
  auto visit = [&](UOp u) {
    if (by_id[u->id]) return;
    by_id[u->id] = u;
    stack.push_back(u);
  };
  for (UOp r : roots) visit(r);
  while (!stack.empty()) {
    UOp u = stack.back();
    stack.pop_back();
    for (UOp s : u->src()) visit(s);
  }
  std::erase(by_id, nullptr);
  return by_id;
}

}  // namespace quern
