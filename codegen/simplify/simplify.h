#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "quern/codegen/uop/uop.h"

namespace quern {

// Makes simplified nodes: every pass builds its graph through one of these, so that a graph never
// holds what a rule would remove. A node comes back as
//   - a constant, if its sources are constants or its bounds hold a single value,
//   - the result of the first rule of the table (rules.h) that matches,
//   - for Index arithmetic, the canonical form of index_sum.h: a sum of multiples of terms in
//     order of their ids with the constant last, comparisons as `sum < constant` or the reverse.
// Rules for rules: a rule never makes more work than it removes, moves constants to the right, and
// terminates because it makes the expression smaller or moves it towards the canonical form.
class Simplifier {
 public:
  explicit Simplifier(Graph& graph) : graph_(graph) {}

  UOp make(Op op, DType dtype, std::span<const UOp> src, int64_t arg = 0,
           std::span<const int64_t> args = {});
  UOp make(Op op, DType dtype, std::initializer_list<UOp> src, int64_t arg = 0,
           std::initializer_list<int64_t> args = {}) {
    return make(op, dtype, std::span(src.begin(), src.size()), arg,
                std::span(args.begin(), args.size()));
  }
  // An Alu op whose result has the type of its last source, or bool for a comparison.
  UOp alu(Op op, std::initializer_list<UOp> src);

  UOp add(UOp a, UOp b) { return alu(Op::ADD, {a, b}); }
  UOp mul(UOp a, UOp b) { return alu(Op::MUL, {a, b}); }
  UOp add(UOp a, int64_t b) { return add(a, graph_.constant(a->dtype, b)); }
  UOp mul(UOp a, int64_t b) { return mul(a, graph_.constant(a->dtype, b)); }
  UOp floordiv(UOp a, int64_t b) { return alu(Op::FLOORDIV, {a, graph_.constant(a->dtype, b)}); }
  UOp floormod(UOp a, int64_t b) { return alu(Op::FLOORMOD, {a, graph_.constant(a->dtype, b)}); }
  UOp sub(UOp a, UOp b) { return alu(Op::SUB, {a, b}); }
  UOp less(UOp a, UOp b) { return alu(Op::CMPLT, {a, b}); }
  UOp both(UOp a, UOp b) { return alu(Op::AND, {a, b}); }
  UOp where(UOp c, UOp a, UOp b) { return alu(Op::WHERE, {c, a, b}); }
  UOp cast(UOp a, DType to) { return make(Op::CAST, to.with_lanes(a->lanes()), {a}); }
  UOp broadcast(UOp a, int lanes) {
    return lanes == a->lanes() ? a : make(Op::VECTORIZE, a->dtype.with_lanes(lanes), {a});
  }

  // The given lanes of a vector.
  UOp gep(UOp a, std::span<const int64_t> lanes);
  // The lanes of several values of one type, one after the other.
  UOp concat(std::span<const UOp> parts);

  Graph& graph() { return graph_; }

 private:
  Graph& graph_;
};

}  // namespace quern
