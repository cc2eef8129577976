#include "quern/codegen/lower/legalize_index.h"

#include <limits>
#include <vector>

#include "quern/codegen/uop/rewrite.h"

namespace quern {
namespace {

bool fits_int32(UOp u) {
  return u->vmin >= std::numeric_limits<int32_t>::min() &&
         u->vmax <= std::numeric_limits<int32_t>::max();
}

// The type in which an op on Index sources is computed: wide if anything in it is.
Scalar width(UOp u) {
  bool narrow = !u->dtype.is_index() || fits_int32(u);
  for (UOp s : u->src()) narrow &= !s->dtype.is_index() || fits_int32(s);
  return narrow ? Scalar::Int32 : Scalar::Int64;
}

UOp convert(Graph& g, UOp u, Scalar to) {
  DType type(to, u->lanes());
  if (u->dtype == type) return u;
  if (u->is_const()) return g.constant(type, u->arg);
  if (u->op == Op::VCONST) return g.make(Op::VCONST, type, {}, 0, u->args);
  return g.make(Op::CAST, type, std::span<const UOp>(&u, 1));
}

bool touches_index(UOp u) {
  if (u->dtype.is_index()) return true;
  for (UOp s : u->src())
    if (s->dtype.is_index()) return true;
  return false;
}

}  // namespace

UOp legalize_index(Graph& g, UOp sink) {
  return rewrite(sink, [&](UOp u, std::span<const UOp> src) -> UOp {
    bool orders = u->op == Op::BARRIER || (u->op == Op::REDUCE && !u->dtype.is_index());
    if (orders || !touches_index(u)) return with_src(g, u, src);
    Scalar wide = width(u);
    if (u->op == Op::DEFINE_VAR) return g.make(u->op, Scalar::Int32, {}, u->arg, u->args);
    if (u->op == Op::CONST) return g.constant(DType(wide, u->lanes()), u->arg);
    if (u->op == Op::VCONST) return g.make(u->op, DType(wide, u->lanes()), {}, 0, u->args);
    // A CAST from Index reads whatever type its source got; an access takes either address.
    bool free = u->op == Op::CAST && !u->dtype.is_index();
    bool access = u->op == Op::LOAD || u->op == Op::STORE;
    std::vector<UOp> out;
    for (size_t i = 0; i < src.size(); ++i)
      out.push_back(!free && !access && u->src(i)->dtype.is_index() ? convert(g, src[i], wide)
                                                                    : src[i]);
    if (free && out[0]->dtype == u->dtype) return out[0];
    DType type = u->dtype.is_index() ? DType(wide, u->lanes()) : u->dtype;
    if (u->op == Op::CAST && u->dtype.is_index()) return convert(g, out[0], wide);
    UOp made = g.make(u->op, type, out, u->arg, u->args);
    // What is small although its sources are not goes on narrow.
    bool narrow = u->dtype.is_index() && wide == Scalar::Int64 && fits_int32(u) &&
                  u->op != Op::RANGE && u->op != Op::SPECIAL;
    return narrow ? convert(g, made, Scalar::Int32) : made;
  });
}

}  // namespace quern
