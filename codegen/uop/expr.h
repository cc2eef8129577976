#pragma once

#include <array>
#include <concepts>
#include <initializer_list>
#include <type_traits>

#include "quern/codegen/uop/eval.h"
#include "quern/codegen/uop/uop.h"

namespace quern {

// A uop with operators, for passes that write arithmetic out: `(x * 2.0 + 1.0) < y`. A number on
// either side is a constant of the other side's type and lanes; `~`, `!` and `&&` do not exist
// (bool has & | ^). Ops on constants alone are folded. The graph must outlive it.
class Expr {
 public:
  Expr(Graph& graph, UOp u) : graph_(&graph), u_(u) {}

  UOp uop() const { return u_; }
  DType dtype() const { return u_->dtype; }
  Graph& graph() const { return *graph_; }

  // A constant of the same lanes: of this type, or of another one.
  template <class T>
  requires std::is_arithmetic_v<T> Expr constant(T value)
  const { return constant(dtype().scalar, value); }
  template <class T>
  requires std::is_arithmetic_v<T> Expr constant(Scalar scalar, T value)
  const {
    DType type(scalar, u_->lanes());
    if (type.is_float()) return {*graph_, graph_->constant_float(type, static_cast<double>(value))};
    return {*graph_, graph_->constant(type, wrap_to(type, static_cast<int64_t>(value)))};
  }

  Expr cast(Scalar to) const { return convert(Op::CAST, to); }
  Expr bitcast(Scalar to) const { return convert(Op::BITCAST, to); }

  // An Alu op whose result has the type of its last operand, or bool for a comparison.
  static Expr alu(Op op, std::initializer_list<Expr> src) {
    const Expr& last = std::data(src)[src.size() - 1];
    DType type = last.dtype();
    return make(op, is_compare(op) ? DType(Scalar::Bool, type.lanes) : type, src);
  }

 private:
  Expr convert(Op op, Scalar to) const {
    DType type(to, u_->lanes());
    return type == dtype() ? *this : make(op, type, {*this});
  }

  static Expr make(Op op, DType type, std::initializer_list<Expr> src) {
    std::array<UOp, 3> uops{};
    std::array<int64_t, 3> lanes{};
    size_t n = 0;
    bool folds = true;
    for (const Expr& e : src) {
      folds &= e.u_->is_const();
      lanes[n] = e.u_->arg;
      uops[n++] = e.u_;
    }
    Graph& graph = *std::data(src)->graph_;
    if (folds) {
      std::span<const int64_t> values(lanes.data(), n);
      return {graph, graph.constant(type, eval(op, uops[n - 1]->dtype, type, values))};
    }
    return {graph, graph.make(op, type, std::span<const UOp>(uops.data(), n))};
  }

  Graph* graph_;
  UOp u_;
};

template <class T>
concept Number = std::is_arithmetic_v<T>;

#define QUERN_BINARY(symbol, op)                                                        \
  inline Expr operator symbol(Expr a, Expr b) { return Expr::alu(Op::op, {a, b}); }     \
  inline Expr operator symbol(Expr a, Number auto b) { return a symbol a.constant(b); } \
  inline Expr operator symbol(Number auto a, Expr b) { return b.constant(a) symbol b; }
QUERN_BINARY(+, ADD)
QUERN_BINARY(-, SUB)
QUERN_BINARY(*, MUL)
QUERN_BINARY(/, DIV)
QUERN_BINARY(&, AND)
QUERN_BINARY(|, OR)
QUERN_BINARY(^, XOR)
QUERN_BINARY(<, CMPLT)
QUERN_BINARY(==, CMPEQ)
#undef QUERN_BINARY

inline Expr operator-(Expr a) { return Expr::alu(Op::NEG, {a}); }
inline Expr operator<<(Expr a, int n) { return Expr::alu(Op::SHL, {a, a.constant(n)}); }
inline Expr operator>>(Expr a, int n) { return Expr::alu(Op::SHR, {a, a.constant(n)}); }
inline Expr max(Expr a, Expr b) { return Expr::alu(Op::MAX, {a, b}); }
inline Expr where(Expr c, Expr a, Expr b) { return Expr::alu(Op::WHERE, {c, a, b}); }
inline Expr where(Expr c, Number auto a, Expr b) { return where(c, b.constant(a), b); }
inline Expr where(Expr c, Expr a, Number auto b) { return where(c, a, a.constant(b)); }

}  // namespace quern
