#include "quern/codegen/lower/lower.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <stdexcept>

#include "quern/codegen/error.h"
#include "quern/codegen/lower/axes.h"
#include "quern/codegen/lower/view_index.h"
#include "quern/codegen/schedule/placement.h"
#include "quern/codegen/simplify/in_bounds.h"
#include "quern/codegen/simplify/sum_collapse.h"
#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

using Place = Placement::Place;

std::vector<UOp> define_vars(const Ast& ast, Simplifier& s) {
  std::vector<UOp> vars;
  for (const VarParam& v : ast.vars())
    vars.push_back(s.make(Op::DEFINE_VAR, Scalar::Index, {}, static_cast<int64_t>(vars.size()),
                          {v.min, v.max}));
  return vars;
}

std::vector<UOp> define_buffers(const Ast& ast, Graph& g) {
  std::vector<UOp> buffers;
  for (const BufferParam& b : ast.buffers())
    buffers.push_back(g.make(Op::DEFINE_GLOBAL, b.dtype, {}, static_cast<int64_t>(buffers.size()),
                             {b.size, b.written, b.image_height, b.image_width}));
  return buffers;
}

class Lowering {
 public:
  Lowering(const Schedule& schedule, Simplifier& s)
      : schedule_(schedule),
        ast_(schedule.ast()),
        s_(s),
        g_(s.graph()),
        vars_(define_vars(ast_, s)),
        buffers_(define_buffers(ast_, s.graph())),
        placement_(place(schedule)),
        axes_(schedule, placement_, s, vars_),
        values_(ast_.nodes().size()) {}

  Lowered run() {
    lower_nodes();
    Lowered out;
    out.sink = g_.make(Op::SINK, Scalar::Void, stores_);
    std::ranges::copy(axes_.global_size, out.global_size);
    std::ranges::copy(axes_.local_size, out.local_size);
    return out;
  }

  // A buffer that is read and written must be read at just the element written, wherever the read's
  // gate is on: tasks and lanes run in any order.
  void check_in_place() {
    lower_nodes();
    for (const Element& read : in_place_)
      for (const Element& written : stored_)
        if (read.buffer == written.buffer &&
            !is_in_bounds(s_.sub(read.index, written.index), read.gate, 1))
          raise<AstError>(
              "buffer {} is written, and read at other elements in the same step; an in-place "
              "kernel may read only the element that it writes",
              read.buffer);
  }

 private:
  struct Element {
    uint32_t buffer;
    UOp index;
    UOp gate;
  };

  void lower_nodes() {
    for (NodeId id = 0; id < values_.size(); ++id)
      for (const Place& p : placement_.places[id]) values_[id].push_back(value(id, p));
  }

  UOp source(const AstNode& n, size_t i, const Position& at) const {
    Position wanted = at;
    const Shape& shape = schedule_.shape(ast_.node(n.src[i]));
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] == SInt(1)) wanted.loops[axis] = Position::kZero;
    const std::vector<Place>& places = placement_.places[n.src[i]];
    for (size_t k = 0; k < places.size(); ++k)
      if (places[k].at == wanted) return values_[n.src[i]][k];
    throw std::logic_error("lower: a source that was not placed");
  }

  UOp value(NodeId id, const Place& p) {
    const AstNode& n = ast_.node(id);
    switch (n.op) {
      case Op::LOAD: return load(n, p.at);
      case Op::CONST: return constant(n, p.at);
      case Op::STORE: return store(n, p.at);
      case Op::SUM:
      case Op::MAX_REDUCE: return reduce(id, p);
      case Op::EXPAND: return source(n, 0, p.at);
      default: break;
    }
    std::array<UOp, 3> src{};
    for (size_t i = 0; i < n.nsrc; ++i) src[i] = source(n, i, p.at);
    return s_.make(n.op, n.dtype, std::span<const UOp>(src.data(), n.nsrc));
  }

  UOp both(UOp a, UOp b) { return a && b ? s_.both(a, b) : a ? a : b; }

  UOp load(const AstNode& n, const Position& at) {
    Coords coords = axes_.coords(at);
    auto [index, valid] = element_index(s_, schedule_.tracker(n), coords, vars_);
    const BufferParam& buffer = ast_.buffers()[n.buffer];
    valid = both(valid, axes_.inside(coords));
    // Of the work items that hold a result, only the one that stores it may still read its element.
    if (buffer.written && at.stage < 0) valid = both(valid, axes_.is_writer(at));
    UOp gate = guard(s_, index, valid, buffer.size);
    if (gate && gate->is_const(0)) return g_.constant(n.dtype, 0);
    if (buffer.written) in_place_.push_back({n.buffer, index, gate});
    UOp memory = buffers_[n.buffer];
    UOp value =
        gate && !gate->is_const(1)
            ? s_.make(Op::LOAD, buffer.dtype, {memory, index, gate, g_.constant(buffer.dtype, 0)})
            : s_.make(Op::LOAD, buffer.dtype, {memory, index});
    return s_.cast(value, n.dtype);
  }

  UOp constant(const AstNode& n, const Position& at) {
    UOp value =
        n.var == AstNode::kNone ? g_.constant(n.dtype, n.value) : s_.cast(vars_[n.var], n.dtype);
    UOp valid = element_index(s_, schedule_.tracker(n), axes_.coords(at), vars_).valid;
    return valid ? s_.where(valid, value, g_.constant(n.dtype, 0)) : value;
  }

  UOp store(const AstNode& n, const Position& at) {
    Coords coords = axes_.coords(at);
    auto [index, valid] = element_index(s_, schedule_.tracker(n), coords, vars_);
    const BufferParam& buffer = ast_.buffers()[n.buffer];
    stored_.push_back({n.buffer, index, nullptr});
    UOp value = s_.cast(s_.cast(source(n, 0, at), n.dtype), buffer.dtype);
    valid = both(both(valid, axes_.inside(coords)), axes_.is_writer(at));
    UOp gate = guard(s_, index, valid, buffer.size);
    UOp memory = buffers_[n.buffer];
    if (gate && gate->is_const(0)) return nullptr;
    stores_.push_back(gate && !gate->is_const(1)
                          ? s_.make(Op::STORE, Scalar::Void, {memory, index, value, gate})
                          : s_.make(Op::STORE, Scalar::Void, {memory, index, value}));
    return nullptr;
  }

  UOp reduce(NodeId id, const Place& p) {
    const AstNode& n = ast_.node(id);
    const Region& region = placement_.regions[static_cast<size_t>(p.region)];
    Op op = n.op == Op::SUM ? Op::ADD : Op::MAX;
    for (size_t i = 0; i < p.at.loops.size(); ++i)
      if (region.axes >> i & 1 && schedule_.space().full_shape[i] == SInt(0))
        return g_.constant(n.dtype, reduce_identity(op, n.dtype));
    UOp value = s_.cast(source(n, 0, region.inside), accumulator_type(n));
    if (UOp inside = axes_.inside(axes_.coords(region.inside), region.axes))
      value = s_.where(inside, value, g_.constant(value->dtype, reduce_identity(op, value->dtype)));
    if (n.dtype.is_bool() && op == Op::ADD) op = Op::MAX;  // both are `or`
    value = sum(op, value, p.region);
    if (region.grouped) value = sum_group(op, value, id, p);
    else if (region.tiled) value = sum_blocks(op, value, id, p);
    return s_.cast(value, n.dtype);
  }

  // Over the loops and lanes of a region.
  UOp sum(Op op, UOp value, int region) {
    std::span<const int64_t> lanes = axes_.lanes(region);
    std::vector<UOp> src = {value};
    for (UOp r : axes_.ranges(region)) {
      UOp folded = lanes.empty() ? collapse_reduce(s_, op, src[0], r) : nullptr;
      if (folded) src[0] = folded;
      else src.push_back(r);
    }
    if (src.size() == 1 && lanes.empty()) return src[0];
    std::vector<int64_t> args = {1};
    args.insert(args.end(), lanes.begin(), lanes.end());
    return g_.make(Op::REDUCE, value->dtype, src, static_cast<int64_t>(op), args);
  }

  UOp define_local(NodeId id, int region, DType dtype, int64_t elements) {
    int64_t next = static_cast<int64_t>(locals_.size());
    int64_t number = locals_.try_emplace({id, region}, next).first->second;
    return g_.make(Op::DEFINE_LOCAL, dtype, {}, number, {elements});
  }

  // `before` must have happened, in whose loops the uop lies but for those of `closed`.
  UOp barrier(std::vector<UOp> before, std::span<const UOp> closed = {}) {
    int64_t n = static_cast<int64_t>(before.size());
    before.insert(before.end(), closed.begin(), closed.end());
    return g_.make(Op::BARRIER, Scalar::Void, before, 0, {&n, 1});
  }

  UOp sum_group(Op op, UOp part, NodeId id, const Place& p) {
    const LoweredAxes::Slots& slots = axes_.slots(p.region, p.at);
    DType type = part->dtype;
    UOp memory = define_local(id, p.region, type, slots.places * slots.lanes);
    std::vector<UOp> src = {memory, slots.first, part};
    // In a loop, not before all items have read the slots of the last step.
    if (std::vector<UOp> loops = axes_.around(p.region); !loops.empty())
      src.push_back(barrier(loops));
    UOp ready = barrier({g_.make(Op::STORE, Scalar::Void, src)});
    UOp value = s_.make(Op::LOAD, type, {memory, slots.second, ready});
    std::vector<UOp> parts = {value};
    parts.insert(parts.end(), slots.steps.begin(), slots.steps.end());
    const int64_t one = 1;
    return g_.make(Op::REDUCE, type, parts, static_cast<int64_t>(op), {&one, 1});
  }

  UOp sum_blocks(Op op, UOp part, NodeId id, const Place& p) {
    const LoweredAxes::Slots& slots = axes_.slots(p.region, p.at);
    DType type = part->dtype;
    UOp memory = define_local(id, p.region, type, slots.places * slots.lanes);
    UOp fill = axes_.place_loop(slots.places);
    UOp start = g_.constant(
        type, type.is_float() && op == Op::ADD ? float_bits(-0.0) : reduce_identity(op, type));
    std::vector<UOp> src = {memory, s_.add(s_.mul(fill, slots.lanes), slots.lane), start};
    if (std::vector<UOp> loops = axes_.around(p.region); !loops.empty())
      src.push_back(barrier(loops));
    UOp filled = g_.make(Op::STORE, Scalar::Void, src);
    std::vector<UOp> closed;
    if (fill->op == Op::RANGE) closed.push_back(fill);

    std::span<const UOp> loops = axes_.stage_ranges(p.region);
    std::vector<UOp> before = {barrier({filled}, closed)};
    before.insert(before.end(), loops.begin(), loops.end());
    UOp last = s_.make(Op::LOAD, type, {memory, slots.first, barrier(before)});
    UOp next = s_.make(Op::STORE, Scalar::Void, {memory, slots.first, s_.alu(op, {last, part})});
    return s_.make(Op::LOAD, type, {memory, slots.second, barrier({next}, loops)});
  }

  const Schedule& schedule_;
  const Ast& ast_;
  Simplifier& s_;
  Graph& g_;
  std::vector<UOp> vars_, buffers_;
  Placement placement_;
  LoweredAxes axes_;
  std::vector<std::vector<UOp>> values_;  // by node, for each of its places
  std::vector<UOp> stores_;
  std::vector<Element> in_place_, stored_;
  std::map<std::pair<NodeId, int>, int64_t> locals_;  // numbers of DEFINE_LOCALs
};

// On plain loops, so that the answer does not depend on opts and target.
void check_in_place(const Ast& ast) {
  Target loops;
  Schedule schedule(ast, loops);
  Graph graph;
  Simplifier s(graph);
  Lowering(schedule, s).check_in_place();
}

}  // namespace

Lowered lower(const Schedule& schedule, Simplifier& s) {
  const Ast& ast = schedule.ast();
  const Shape& shape = schedule.shape(ast.node(ast.outputs()[0]));
  if (std::ranges::any_of(shape, [](const SInt& size) { return size == SInt(0); })) {
    Lowered empty;
    empty.sink = s.graph().make(Op::SINK, Scalar::Void, {});
    empty.global_size[0] = 0;
    return empty;
  }
  if (schedule.is_in_place()) check_in_place(ast);
  return Lowering(schedule, s).run();
}

}  // namespace quern
