#include "quern/codegen/simplify/simplify.h"

#include <algorithm>
#include <array>
#include <vector>

#include "quern/codegen/simplify/index_sum.h"
#include "quern/codegen/simplify/rules.h"
#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

bool all_const(std::span<const UOp> src) {
  for (UOp s : src)
    if (!s->is_const() && s->op != Op::VCONST) return false;
  return !src.empty();
}

int64_t fold_lane(Op op, DType dtype, std::span<const UOp> src, size_t lane) {
  std::array<int64_t, 3> lanes{};
  for (size_t i = 0; i < src.size(); ++i)
    lanes[i] = src[i]->is_const() ? src[i]->arg : src[i]->args[lane];
  return eval(op, src.back()->dtype, dtype, std::span(lanes.data(), src.size()));
}

UOp fold(Graph& graph, Op op, DType dtype, std::span<const UOp> src) {
  bool same = std::ranges::all_of(src, [](UOp s) { return s->is_const(); });
  std::vector<int64_t> lanes;
  for (size_t i = 0; i < (same ? 1 : dtype.lanes); ++i)
    lanes.push_back(fold_lane(op, dtype, src, i));
  same = std::ranges::all_of(lanes, [&](int64_t lane) { return lane == lanes[0]; });
  return same ? graph.constant(dtype, lanes[0]) : graph.make(Op::VCONST, dtype, {}, 0, lanes);
}

// Conversions need both types, which the patterns' right sides cannot name.
UOp simplify_cast(Simplifier& s, DType to, UOp x) {
  if (x->dtype == to) return x;
  if (x->op != Op::CAST) return nullptr;
  UOp inner = x->src(0);
  DType from = inner->dtype, through = x->dtype;
  bool integers = !from.is_float() && !through.is_float();
  // The inner conversion keeps the value: its source's bounds fit the type between.
  bool exact = integers && inner->vmin >= through.min_int() && inner->vmax <= through.max_int() &&
               from.scalar != Scalar::UInt64;
  // A float that was only widened has the value it had.
  bool widens = from.is_float() && through.is_float() && through.bits() > from.bits();
  if (exact || widens) return s.cast(inner, to.element());
  return nullptr;
}

// Integer values that come from an index (a range counted by a mask, say) compare as indices do.
UOp index_behind_cast(UOp u, Graph& graph) {
  if (u->is_const() && u->dtype.is_int() && u->dtype.scalar != Scalar::UInt64)
    return graph.constant(Scalar::Index, u->arg);
  if (u->op != Op::CAST || !u->src(0)->dtype.is_index()) return nullptr;
  UOp inner = u->src(0);
  bool exact = inner->vmin >= u->dtype.min_int() && inner->vmax <= u->dtype.max_int();
  return exact ? inner : nullptr;
}

bool is_index_arithmetic(Op op) {
  return op == Op::ADD || op == Op::SUB || op == Op::MUL || op == Op::NEG || is_compare(op);
}

// value arithmetic on exact casts of indices is index arithmetic, as long as it cannot wrap
UOp lift_to_index(Simplifier& s, Op op, DType dtype, std::span<const UOp> src) {
  if (!is_index_arithmetic(op) || dtype.lanes != 1 || !src[0]->dtype.is_int()) return nullptr;
  std::array<UOp, 2> inner{};
  bool any = false;
  for (size_t i = 0; i < src.size(); ++i) {
    if (src[i]->dtype.is_index()) return nullptr;
    inner[i] = index_behind_cast(src[i], s.graph());
    if (!inner[i]) return nullptr;
    any |= src[i]->op == Op::CAST;
  }
  if (!any) return nullptr;
  DType type = is_compare(op) ? dtype : DType(Scalar::Index);
  UOp lifted = s.make(op, type, std::span<const UOp>(inner.data(), src.size()));
  if (is_compare(op)) return lifted;
  bool exact = lifted->vmin >= dtype.min_int() && lifted->vmax <= dtype.max_int();
  return exact ? s.cast(lifted, dtype) : nullptr;
}

UOp simplify_vector(Simplifier& s, Op op, DType dtype, std::span<const UOp> src,
                    std::span<const int64_t> args) {
  Graph& g = s.graph();
  if (op == Op::VECTORIZE) {
    if (src.size() == 1 && src[0]->lanes() == dtype.lanes) return src[0];
    if (src.size() == 1 && src[0]->is_const()) return g.constant(dtype, src[0]->arg);
    for (UOp x : src)
      if (x != src[0]) return nullptr;
    if (src.size() > 1 && src[0]->is_const()) return g.constant(dtype, src[0]->arg);
    if (src.size() > 1 && src[0]->lanes() == 1) return g.make(op, dtype, {src[0]});
    return nullptr;
  }
  UOp x = src[0];
  if (x->is_const()) return g.constant(dtype, x->arg);
  if (x->op == Op::VECTORIZE && x->nsrc == 1) return s.broadcast(x->src(0), dtype.lanes);
  if (dtype.lanes == x->lanes()) {
    bool identity = true;
    for (int i = 0; i < dtype.lanes; ++i) identity &= args[static_cast<size_t>(i)] == i;
    if (identity) return x;
  }
  if (x->op == Op::VECTORIZE && dtype.lanes == 1) {
    int64_t lane = args[0];
    for (UOp part : x->src()) {
      if (lane < part->lanes()) return s.make(Op::GEP, dtype, {part}, 0, {lane});
      lane -= part->lanes();
    }
  }
  if (x->op == Op::VCONST && dtype.lanes == 1)
    return g.constant(dtype, x->args[static_cast<size_t>(args[0])]);
  return nullptr;
}

UOp simplify_index_op(Simplifier& s, Op op, DType dtype, UOp a, UOp b) {
  if (a->lanes() != 1) return nullptr;
  switch (op) {
    case Op::ADD:
    case Op::SUB:
    case Op::MUL:
    case Op::NEG: return dtype.is_index() ? simplify_index_sum(s, op, a, b) : nullptr;
    case Op::FLOORDIV:
    case Op::FLOORMOD: return simplify_index_division(s, op, a, b);
    case Op::CMPLT:
    case Op::CMPEQ: return simplify_index_compare(s, op, a, b);
    default: return nullptr;
  }
}

bool single_value(UOp u) {
  DType t = u->dtype;
  if (u->vmin != u->vmax || t.is_float() || t.scalar == Scalar::Void) return false;
  if (t.scalar == Scalar::UInt64 && u->vmax == INT64_MAX) return false;
  // A RANGE of symbolic size may run no step at all.
  if (u->op == Op::RANGE || u->op == Op::SPECIAL) return u->src(0)->is_const();
  return is_alu(u->op) || u->op == Op::LANE || u->op == Op::DEFINE_VAR || u->op == Op::GEP;
}

}  // namespace

UOp Simplifier::alu(Op op, std::initializer_list<UOp> src) {
  UOp last = std::data(src)[src.size() - 1];
  DType type = is_compare(op) ? DType(Scalar::Bool, last->lanes()) : last->dtype;
  return make(op, type, std::span(src.begin(), src.size()));
}

UOp Simplifier::gep(UOp a, std::span<const int64_t> lanes) {
  int n = static_cast<int>(lanes.size());
  bool same = std::ranges::all_of(lanes, [&](int64_t lane) { return lane == lanes[0]; });
  if (same && n > 1) return broadcast(gep(a, lanes.first(1)), n);
  if (a->lanes() == 1) return a;
  return make(Op::GEP, a->dtype.with_lanes(n), std::span<const UOp>(&a, 1), 0, lanes);
}

UOp Simplifier::concat(std::span<const UOp> parts) {
  if (parts.size() == 1) return parts[0];
  int lanes = 0;
  for (UOp part : parts) lanes += part->lanes();
  return make(Op::VECTORIZE, parts[0]->dtype.with_lanes(lanes), parts);
}

UOp Simplifier::make(Op op, DType dtype, std::span<const UOp> src, int64_t arg,
                     std::span<const int64_t> args) {
  if (op == Op::VECTORIZE || op == Op::GEP) {
    if (UOp u = simplify_vector(*this, op, dtype, src, args)) return u;
    return graph_.make(op, dtype, src, arg, args);
  }
  std::array<UOp, 2> ordered;
  if (is_alu(op)) {
    if (all_const(src)) return fold(graph_, op, dtype, src);
    if (is_commutative(op)) {
      bool swap = src[0]->is_const() || (!src[1]->is_const() && src[0]->id > src[1]->id);
      if (swap) {
        ordered = {src[1], src[0]};
        src = ordered;
      }
    }
    if (op == Op::CAST)
      if (UOp u = simplify_cast(*this, dtype, src[0])) return u;
    if (src[0]->dtype.is_index())
      if (UOp u = simplify_index_op(*this, op, dtype, src[0], src.size() > 1 ? src[1] : nullptr))
        return u;
    if (UOp u = lift_to_index(*this, op, dtype, src)) return u;
    Pattern::Captures captures;
    for (const Rule* rule : rules_for(op)) {
      if (!applies_to(*rule, dtype) || !rule->pattern.match(dtype, src, captures)) continue;
      if (rule->when && !rule->when(rule->pattern, captures)) continue;
      return rule->pattern.build(*this, dtype, captures);
    }
  }
  UOp u = graph_.make(op, dtype, src, arg, args);
  return single_value(u) ? graph_.constant(dtype, u->vmin) : u;
}

}  // namespace quern
