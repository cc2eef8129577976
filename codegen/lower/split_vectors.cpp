#include "quern/codegen/lower/split_vectors.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace quern {
namespace {

using Lanes = std::span<const int64_t>;

class Splitter {
 public:
  Splitter(Simplifier& s, const Target& target, size_t ids)
      : s_(s), target_(target), values_(ids) {}

  UOp visit(UOp u) {
    Value& value = values_[u->id];
    if (moves_lanes(u)) return nullptr;
    value.width = width(u);
    if (u->lanes() == 1 || u->op == Op::LOAD || u->op == Op::STORE) {
      // Accesses have been cut to the target's width when they were made.
      value.width = u->lanes();
      std::vector<int64_t> all = iota(0, widest_source(u));
      value.pieces = {rebuild(u, u->dtype, all)};
    } else {
      for (int start = 0; start < u->lanes(); start += value.width) {
        int n = std::min(value.width, u->lanes() - start);
        value.pieces.push_back(rebuild(u, u->dtype.with_lanes(n), iota(start, n)));
      }
    }
    return value.pieces[0];
  }

 private:
  struct Value {
    int width = 1;
    std::vector<UOp>
        pieces;  // of `width` lanes, the last one may be shorter; none if it moves lanes
  };

  static std::vector<int64_t> iota(int start, int n) {
    std::vector<int64_t> lanes(static_cast<size_t>(n));
    std::iota(lanes.begin(), lanes.end(), start);
    return lanes;
  }

  // Nodes that need no piece of their own: whoever uses their lanes picks them further down.
  static bool moves_lanes(UOp u) {
    return u->op == Op::VECTORIZE || u->op == Op::GEP || u->op == Op::CONST || u->op == Op::VCONST;
  }

  static int widest_source(UOp u) {
    int lanes = u->lanes();
    for (UOp x : u->src()) lanes = std::max(lanes, x->lanes());
    return lanes;
  }

  // A comparison works on its operands' vectors, and logic on what comparisons made, so a bool
  // takes the narrowest width of its sources.
  int width(UOp u) const {
    int lanes = u->dtype.is_bool() ? INT16_MAX : target_.alu_lanes(u->dtype);
    for (UOp x : u->src()) {
      if (x->lanes() == 1) continue;
      lanes = std::min(lanes, x->dtype.is_bool() ? source_width(x) : target_.alu_lanes(x->dtype));
    }
    return std::clamp(lanes, 1, std::max(1, u->lanes()));
  }
  int source_width(UOp x) const { return moves_lanes(x) ? INT16_MAX : values_[x->id].width; }

  UOp rebuild(UOp u, DType dtype, Lanes lanes) {
    std::vector<UOp> src;
    src.reserve(u->nsrc);
    for (UOp x : u->src())
      src.push_back(x->lanes() == 1 ? scalar(x)
                                    : pick(x, lanes.first(std::min(
                                                  lanes.size(), static_cast<size_t>(x->lanes())))));
    return s_.make(u->op, dtype, src, u->arg, u->args);
  }

  UOp scalar(UOp x) {
    std::vector<UOp>& pieces = values_[x->id].pieces;
    if (pieces.empty()) {
      int64_t zero = 0;
      pieces.push_back(pick_moved(x, {&zero, 1}));
    }
    return pieces[0];
  }

  // The given lanes of an old node, as one new node.
  UOp pick(UOp x, Lanes lanes) {
    if (x->lanes() == 1) return s_.broadcast(scalar(x), static_cast<int>(lanes.size()));
    return moves_lanes(x) ? pick_moved(x, lanes) : pick_pieces(x, lanes);
  }

  UOp pick_moved(UOp x, Lanes lanes) {
    DType type = x->dtype.with_lanes(static_cast<int>(lanes.size()));
    std::vector<int64_t> mapped(lanes.size());
    switch (x->op) {
      case Op::CONST: return s_.graph().constant(type, x->arg);
      case Op::VCONST: {
        for (size_t i = 0; i < lanes.size(); ++i)
          mapped[i] = x->args[static_cast<size_t>(lanes[i])];
        bool same = std::ranges::all_of(mapped, [&](int64_t v) { return v == mapped[0]; });
        return same ? s_.graph().constant(type, mapped[0])
                    : s_.graph().make(Op::VCONST, type, {}, 0, mapped);
      }
      case Op::GEP:
        for (size_t i = 0; i < lanes.size(); ++i)
          mapped[i] = x->args[static_cast<size_t>(lanes[i])];
        return pick(x->src(0), mapped);
      default: break;
    }
    if (x->nsrc == 1 && x->src(0)->lanes() == 1) return s_.broadcast(scalar(x->src(0)), type.lanes);
    std::vector<int> start(x->nsrc + 1, 0);
    for (size_t i = 0; i < x->nsrc; ++i) start[i + 1] = start[i] + x->src(i)->lanes();
    return join(
        lanes,
        [&](int64_t lane) {
          auto part = std::ranges::upper_bound(start, lane) - start.begin() - 1;
          return std::pair(part, lane - start[static_cast<size_t>(part)]);
        },
        [&](int64_t part, Lanes inner) { return pick(x->src(static_cast<size_t>(part)), inner); });
  }

  UOp pick_pieces(UOp x, Lanes lanes) {
    const Value& value = values_[x->id];
    return join(
        lanes, [&](int64_t lane) { return std::pair(lane / value.width, lane % value.width); },
        [&](int64_t part, Lanes inner) {
          return s_.gep(value.pieces[static_cast<size_t>(part)], inner);
        });
  }

  // Cuts the list into runs that lie in one part each (`locate` says in which, and where), takes
  // each run with `take` and concatenates them.
  template <class Locate, class Take>
  UOp join(Lanes lanes, Locate locate, Take take) {
    std::vector<UOp> runs;
    std::vector<int64_t> inner;
    for (size_t i = 0; i < lanes.size();) {
      auto part = locate(lanes[i]).first;
      inner.clear();
      for (; i < lanes.size() && locate(lanes[i]).first == part; ++i)
        inner.push_back(locate(lanes[i]).second);
      runs.push_back(take(part, Lanes(inner)));
    }
    return s_.concat(runs);
  }

  Simplifier& s_;
  const Target& target_;
  std::vector<Value> values_;
};

}  // namespace

UOp split_vectors(Simplifier& s, UOp sink, const Target& target) {
  Splitter splitter(s, target, sink->id + 1);
  UOp last = nullptr;
  for (UOp u : reachable({&sink, 1})) last = splitter.visit(u);
  return last;
}

}  // namespace quern
