#include "codegen/lower.h"

#include <algorithm>
#include <map>

#include "codegen/error.h"
#include "codegen/eval.h"
#include "codegen/in_bounds.h"
#include "codegen/sum_collapse.h"
#include "codegen/view_index.h"

namespace quern {
namespace {

using Coords = std::vector<UOp>;  // by simplified axis

class Lowering {
 public:
  Lowering(const Schedule& schedule, Simplifier& s)
      : schedule_(schedule),
        ast_(schedule.ast()),
        s_(s),
        g_(s.graph()),
        placements_(ast_.nodes().size()),
        levels_(ast_.nodes().size(), 0) {}

  Lowered run() {
    if (is_empty()) return {g_.make(Op::SINK, Scalar::Void, {}), 0};
    make_params();
    make_outer_axes();
    place_nodes();
    for (NodeId id = 0; id < placements_.size(); ++id)
      for (Placement& p : placements_[id]) p.value = value(id, p);
    check_in_place();
    return {g_.make(Op::SINK, Scalar::Void, stores_), tasks_};
  }

 private:
  // A node at a position: the same node may be needed at several (a value summed over an axis, and
  // used along it).
  struct Placement {
    Coords coords;
    Coords inner;             // of a reduce: its source's position
    std::vector<UOp> ranges;  // of a reduce
    std::vector<int64_t> lanes;
    UOp value = nullptr;
  };

  struct Region {  // the loops of reduces over the same axes at the same position
    uint64_t axes;
    int level;
    bool whole;
    Coords outside, coords;
    std::vector<UOp> ranges;
    std::vector<int64_t> lanes;
  };

  bool is_empty() const {
    const Shape& shape = schedule_.shape(ast_.node(ast_.outputs()[0]));
    return std::ranges::any_of(shape, [](const SInt& size) { return size == SInt(0); });
  }

  void make_params() {
    for (size_t i = 0; i < ast_.vars().size(); ++i) {
      const VarParam& v = ast_.vars()[i];
      vars_.push_back(
          s_.make(Op::DEFINE_VAR, Scalar::Index, {}, static_cast<int64_t>(i), {v.min, v.max}));
    }
    for (size_t i = 0; i < ast_.buffers().size(); ++i) {
      const BufferParam& b = ast_.buffers()[i];
      buffers_.push_back(g_.make(Op::DEFINE_GLOBAL, b.dtype, {}, static_cast<int64_t>(i),
                                 {b.size, b.written, b.image_height, b.image_width}));
    }
  }

  UOp range(const SInt& size, int base) {
    return s_.make(Op::RANGE, Scalar::Index, {to_uop(s_, size, vars_)}, next_range_++, {base});
  }

  UOp lane(size_t axis) {
    const Axis& a = schedule_.axes()[axis];
    return s_.make(Op::LANE, Scalar::Index, {}, static_cast<int64_t>(axis), {a.size.constant()});
  }

  void advance(Coords& coords, const Axis& axis, UOp position) {
    UOp& at = coords[static_cast<size_t>(axis.base)];
    at = s_.add(at, s_.mul(position, axis.stride));
  }

  // The coordinates along axes that no reduce sums over.
  void make_outer_axes() {
    outer_.assign(static_cast<size_t>(schedule_.rank()), g_.index(0));
    for (const Axis& a : schedule_.axes())
      if (a.kind == AxisKind::Thread) tasks_ *= a.size.constant();
    UOp task = nullptr;
    if (tasks_ > 1)
      task = s_.make(Op::SPECIAL, Scalar::Index, {g_.index(tasks_)}, 0,
                     {static_cast<int64_t>(SpecialKind::Task)});
    int64_t later = tasks_;
    for (size_t i = 0; i < schedule_.axes().size(); ++i) {
      const Axis& a = schedule_.axes()[i];
      switch (a.kind) {
        case AxisKind::Thread:
          later /= a.size.constant();
          advance(outer_, a, s_.floormod(s_.floordiv(task, later), a.size.constant()));
          break;
        case AxisKind::Global: advance(outer_, a, range(a.size, a.base)); break;
        case AxisKind::Upcast: advance(outer_, a, lane(i)); break;
        case AxisKind::Reduce:
        case AxisKind::Unroll: break;
      }
    }
  }

  // Loops over the given reduce axes: `coords` with positions along them, and the RANGEs.
  void enter(uint64_t axes, Region& region) {
    for (size_t i = 0; i < schedule_.axes().size(); ++i) {
      const Axis& a = schedule_.axes()[i];
      if (!(axes >> a.base & 1)) continue;
      if (a.kind == AxisKind::Unroll) {
        region.lanes.push_back(static_cast<int64_t>(i));
        advance(region.coords, a, lane(i));
      } else if (a.kind == AxisKind::Reduce) {
        UOp r = range(a.size, a.base);
        if (r->op == Op::RANGE) region.ranges.push_back(r);
        advance(region.coords, a, r);
      }
    }
  }

  // The same with one loop for each axis, however the schedule splits it.
  void enter_whole(uint64_t axes, Region& region) {
    for (size_t base = 0; base < outer_.size(); ++base) {
      if (!(axes >> base & 1)) continue;
      UOp r = range(schedule_.space().full_shape[base], static_cast<int>(base));
      if (r->op == Op::RANGE) region.ranges.push_back(r);
      region.coords[base] = r;
    }
  }

  // A position as a node of this shape sees it: 0 along axes of size 1.
  Coords restricted(const Coords& coords, const Shape& shape) const {
    Coords out = coords;
    for (size_t i = 0; i < out.size(); ++i)
      if (shape[i] == SInt(1)) out[i] = g_.index(0);
    return out;
  }

  void require(NodeId id, const Coords& coords) {
    Coords at = restricted(coords, schedule_.shape(ast_.node(id)));
    auto& list = placements_[id];
    if (std::ranges::none_of(list, [&](const Placement& p) { return p.coords == at; })) {
      list.emplace_back();
      list.back().coords = std::move(at);
    }
  }

  // Users first, so that outer loops are numbered before the loops inside them.
  void place_nodes() {
    for (NodeId id = 0; id < levels_.size(); ++id) {
      const AstNode& n = ast_.node(id);
      for (NodeId x : n.sources()) levels_[id] = std::max(levels_[id], levels_[x]);
      levels_[id] += n.is_reduce();
    }
    Region output{0, 0, false, outer_, outer_, {}, {}};
    const Shape& shape = schedule_.shape(ast_.node(ast_.outputs()[0]));
    uint64_t looped = 0;
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] != SInt(1)) looped |= uint64_t{1} << i;
    enter(looped & schedule_.space().reduced, output);
    for (NodeId id : ast_.outputs()) require(id, output.coords);
    for (NodeId id = static_cast<NodeId>(placements_.size()); id-- > 0;) {
      const AstNode& n = ast_.node(id);
      for (size_t i = 0; i < placements_[id].size(); ++i) {
        if (n.is_reduce()) enter_reduce(id, placements_[id][i]);
        const Coords& at = n.is_reduce() ? placements_[id][i].inner : placements_[id][i].coords;
        for (NodeId x : n.sources()) require(x, at);
      }
    }
  }

  void enter_reduce(NodeId id, Placement& p) {
    uint64_t axes = schedule_.space().reduce_axes[id];
    bool whole = counts_only(id, axes);
    auto same = std::ranges::find_if(regions_, [&](const Region& r) {
      return r.axes == axes && r.level == levels_[id] && r.whole == whole && r.outside == p.coords;
    });
    if (same == regions_.end()) {
      Region region{axes, levels_[id], whole, p.coords, p.coords, {}, {}};
      if (whole) enter_whole(axes, region);
      else enter(axes, region);
      regions_.push_back(std::move(region));
      same = regions_.end() - 1;
    }
    p.inner = same->coords;
    p.ranges = same->ranges;
    p.lanes = same->lanes;
  }

  // No load under the reduce moves along its axes: what is summed are masks and constants, and a
  // closed form is likely.
  bool counts_only(NodeId reduce, uint64_t axes) const {
    std::vector<bool> under(reduce + 1, false);
    under[reduce] = true;
    for (NodeId id = reduce + 1; id-- > 0;) {
      if (!under[id]) continue;
      const AstNode& n = ast_.node(id);
      if (id != reduce && n.is_reduce()) return false;
      for (NodeId x : n.sources()) under[x] = true;
      if (n.op != Op::LOAD) continue;
      const View& view = schedule_.tracker(n).views().back();
      for (size_t i = 0; i < view.shape().size(); ++i)
        if (axes >> i & 1 && (view.strides()[i] != SInt(0) || view.is_masked())) return false;
    }
    return true;
  }

  UOp source(const AstNode& n, size_t i, const Coords& at) const {
    Coords coords = restricted(at, schedule_.shape(ast_.node(n.src[i])));
    for (const Placement& p : placements_[n.src[i]])
      if (p.coords == coords) return p.value;
    throw std::logic_error("lower: a source that was not placed");
  }

  UOp value(NodeId id, const Placement& p) {
    const AstNode& n = ast_.node(id);
    switch (n.op) {
      case Op::LOAD: return load(n, p.coords);
      case Op::CONST: return constant(n, p.coords);
      case Op::STORE: return store(n, p.coords);
      case Op::SUM:
      case Op::MAX_REDUCE: return reduce(id, p);
      case Op::EXPAND: return source(n, 0, p.coords);
      default: break;
    }
    std::array<UOp, 3> src{};
    for (size_t i = 0; i < n.nsrc; ++i) src[i] = source(n, i, p.coords);
    return s_.make(n.op, n.dtype, std::span<const UOp>(src.data(), n.nsrc));
  }

  UOp load(const AstNode& n, const Coords& coords) {
    auto [index, valid] = element_index(s_, schedule_.tracker(n), coords, vars_);
    const BufferParam& buffer = ast_.buffers()[n.buffer];
    UOp zero = g_.constant(n.dtype, 0);
    UOp gate = guard(s_, index, valid, buffer.size);
    if (gate && gate->is_const(0)) return zero;
    if (buffer.written) in_place_.push_back({n.buffer, index, gate});
    UOp memory = buffers_[n.buffer];
    UOp value =
        gate && !gate->is_const(1)
            ? s_.make(Op::LOAD, buffer.dtype, {memory, index, gate, g_.constant(buffer.dtype, 0)})
            : s_.make(Op::LOAD, buffer.dtype, {memory, index});
    return s_.cast(value, n.dtype);
  }

  UOp constant(const AstNode& n, const Coords& coords) {
    UOp value =
        n.var == AstNode::kNone ? g_.constant(n.dtype, n.value) : s_.cast(vars_[n.var], n.dtype);
    UOp valid = element_index(s_, schedule_.tracker(n), coords, vars_).valid;
    return valid ? s_.where(valid, value, g_.constant(n.dtype, 0)) : value;
  }

  UOp store(const AstNode& n, const Coords& coords) {
    auto [index, valid] = element_index(s_, schedule_.tracker(n), coords, vars_);
    const BufferParam& buffer = ast_.buffers()[n.buffer];
    stored_.push_back({n.buffer, index, nullptr});
    UOp value = s_.cast(s_.cast(source(n, 0, coords), n.dtype), buffer.dtype);
    UOp gate = guard(s_, index, valid, buffer.size);
    UOp memory = buffers_[n.buffer];
    if (gate && gate->is_const(0)) return nullptr;
    stores_.push_back(gate && !gate->is_const(1)
                          ? s_.make(Op::STORE, Scalar::Void, {memory, index, value, gate})
                          : s_.make(Op::STORE, Scalar::Void, {memory, index, value}));
    return nullptr;
  }

  UOp reduce(NodeId id, const Placement& p) {
    const AstNode& n = ast_.node(id);
    Op op = n.op == Op::SUM ? Op::ADD : Op::MAX;
    bool narrow = n.dtype.scalar == Scalar::Float16 || n.dtype.scalar == Scalar::BFloat16;
    DType type = op == Op::ADD && narrow ? DType(Scalar::Float32) : n.dtype;
    for (size_t i = 0; i < p.inner.size(); ++i)
      if (schedule_.space().reduce_axes[id] >> i & 1 && schedule_.space().full_shape[i] == SInt(0))
        return g_.constant(n.dtype, reduce_identity(op, n.dtype));
    UOp value = s_.cast(source(n, 0, p.inner), type);
    if (n.dtype.is_bool() && op == Op::ADD) op = Op::MAX;  // both are `or`
    std::vector<UOp> src = {value};
    for (UOp r : p.ranges) {
      UOp folded = p.lanes.empty() ? collapse_reduce(s_, op, src[0], r) : nullptr;
      if (folded) src[0] = folded;
      else src.push_back(r);
    }
    if (src.size() > 1 || !p.lanes.empty()) {
      std::vector<int64_t> args = {1};
      for (int64_t axis : p.lanes) {
        args.push_back(axis);
        args.push_back(schedule_.axes()[static_cast<size_t>(axis)].size.constant());
      }
      value = g_.make(Op::REDUCE, type, src, static_cast<int64_t>(op), args);
    } else {
      value = src[0];
    }
    return s_.cast(value, n.dtype);
  }

  // A buffer that is read and written must be read at just the element written, wherever the read's
  // gate is on: tasks and lanes run in any order.
  void check_in_place() const {
    for (const Element& read : in_place_)
      for (const Element& written : stored_)
        if (read.buffer == written.buffer &&
            !is_in_bounds(s_.sub(read.index, written.index), read.gate, 1))
          raise<AstError>(
              "buffer {} is written, and read at other elements in the same step; an in-place "
              "kernel may read only the element that it writes",
              read.buffer);
  }

  struct Element {
    uint32_t buffer;
    UOp index;
    UOp gate;
  };

  const Schedule& schedule_;
  const Ast& ast_;
  Simplifier& s_;
  Graph& g_;
  std::vector<std::vector<Placement>> placements_;  // by node
  std::vector<int> levels_;  // by node: how many reduces follow each other up to it
  std::vector<Region> regions_;
  std::vector<UOp> vars_, buffers_, stores_;
  std::vector<Element> in_place_, stored_;
  Coords outer_;
  int64_t tasks_ = 1;
  int64_t next_range_ = 0;
};

}  // namespace

Lowered lower(const Schedule& schedule, Simplifier& s) { return Lowering(schedule, s).run(); }

}  // namespace quern
