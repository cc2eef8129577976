#include "quern/codegen/lower/view_index.h"

#include <vector>

namespace quern {
namespace {

class Indexer {
 public:
  Indexer(Simplifier& s, std::span<const UOp> vars) : s_(s), vars_(vars) {}

  ElementIndex run(const ShapeTracker& tracker, std::span<const UOp> at) {
    std::vector<UOp> coords(at.begin(), at.end());
    UOp index = nullptr;
    for (size_t i = tracker.views().size(); i-- > 0;) {
      const View& view = tracker.views()[i];
      if (index) coords = unravel(index, view);
      // A kernel without axes may see a view whose axes all have size 1.
      coords.resize(view.shape().size(), s_.graph().index(0));
      check_mask(view, coords);
      index = uop(view.offset());
      for (size_t d = 0; d < coords.size(); ++d)
        index = s_.add(index, s_.mul(coords[d], uop(view.strides()[d])));
    }
    return {index, valid_ && valid_->is_const(1) ? nullptr : valid_};
  }

 private:
  UOp uop(const SInt& value) { return to_uop(s_, value, vars_); }

  void require(UOp condition) { valid_ = valid_ ? s_.both(valid_, condition) : condition; }

  void check_mask(const View& view, std::span<const UOp> coords) {
    if (!view.is_masked()) return;
    for (size_t d = 0; d < coords.size(); ++d) {
      const auto& [begin, end] = view.mask()[d];
      require(s_.less(s_.add(uop(begin), -1), coords[d]));
      require(s_.less(coords[d], uop(end)));
    }
  }

  // Row-major coordinates. The outermost needs no remainder: a valid index is in the view.
  std::vector<UOp> unravel(UOp index, const View& view) {
    std::vector<UOp> coords(view.shape().size(), s_.graph().index(0));
    for (size_t d = coords.size(); d-- > 0;) {
      UOp size = uop(view.shape()[d]);
      if (size->is_const(1)) continue;
      bool outermost = true;
      for (size_t outer = 0; outer < d; ++outer) outermost &= view.shape()[outer] == SInt(1);
      coords[d] = outermost ? index : s_.alu(Op::FLOORMOD, {index, size});
      if (outermost) break;
      index = s_.alu(Op::FLOORDIV, {index, size});
    }
    return coords;
  }

  Simplifier& s_;
  std::span<const UOp> vars_;
  UOp valid_ = nullptr;
};

}  // namespace

UOp to_uop(Simplifier& s, const SInt& value, std::span<const UOp> vars) {
  if (value.is_constant()) return s.graph().index(value.constant());
  UOp sum = s.graph().index(0);
  for (const auto& term : value.terms()) {
    UOp product = nullptr;
    for (uint32_t var : term.vars) product = product ? s.mul(product, vars[var]) : vars[var];
    UOp scaled = product ? s.mul(product, term.coef) : s.graph().index(term.coef);
    sum = s.add(sum, scaled);
  }
  return sum;
}

ElementIndex element_index(Simplifier& s, const ShapeTracker& tracker, std::span<const UOp> coords,
                           std::span<const UOp> vars) {
  return Indexer(s, vars).run(tracker, coords);
}

}  // namespace quern
