#include "quern/codegen/ast/array.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "quern/codegen/error.h"
#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

bool is_leaf(const AstNode& n) { return n.op == Op::LOAD || n.op == Op::CONST; }

std::vector<bool> needed_for(const AstBuilder& ast, NodeId root) {
  std::vector<bool> needed(root + 1, false);
  needed[root] = true;
  for (NodeId id = root + 1; id-- > 0;)
    if (needed[id])
      for (NodeId x : ast.node(id).sources()) needed[x] = true;
  return needed;
}

}  // namespace

const Shape& Array::shape() const { return kernel_->ast_.shape(node_); }
DType Array::dtype() const { return kernel_->ast_.dtype(node_); }

Array Array::reshape(const Shape& shape) const {
  auto vars = kernel_->ast_.var_bounds();
  return {*kernel_, kernel_->move(node_, "reshape",
                                  [&](const ShapeTracker& t) { return t.reshape(shape, vars); })};
}

Array Array::permute(std::span<const size_t> axes) const {
  return {*kernel_, kernel_->permute(node_, axes)};
}
Array Array::expand(const Shape& shape) const {
  return {*kernel_, kernel_->broadcast(node_, shape)};
}

Array Array::pad(std::span<const PadDim> pads) const {
  auto vars = kernel_->ast_.var_bounds();
  auto padded = [&](const ShapeTracker& t) { return t.pad(pads, vars); };
  NodeId moved = kernel_->move(node_, "pad", padded);
  if (is_leaf(kernel_->ast_.node(node_))) return {*kernel_, moved};
  // A computed value need not be 0 where its sources are.
  NodeId zero = kernel_->number(0, dtype(), kernel_->ast_.shape(moved));
  NodeId inside = kernel_->ast_.constant(
      Scalar::Bool, 1, padded(ShapeTracker({View::make(shape(), Shape(shape().size(), 0), 0)})));
  return {*kernel_, kernel_->ast_.alu(Op::WHERE, std::array{inside, moved, zero})};
}

Array Array::shrink(std::span<const MaskDim> parts) const {
  auto vars = kernel_->ast_.var_bounds();
  return {*kernel_, kernel_->move(node_, "shrink",
                                  [&](const ShapeTracker& t) { return t.shrink(parts, vars); })};
}

Array Array::stride(std::span<const int64_t> steps) const {
  auto vars = kernel_->ast_.var_bounds();
  return {*kernel_, kernel_->move(node_, "stride",
                                  [&](const ShapeTracker& t) { return t.stride(steps, vars); })};
}

Array Array::sum(std::initializer_list<int64_t> axes) const {
  return {*kernel_, kernel_->ast_.reduce(Op::SUM, node_, std::span(axes.begin(), axes.size()))};
}

Array Array::max(std::initializer_list<int64_t> axes) const {
  return {*kernel_,
          kernel_->ast_.reduce(Op::MAX_REDUCE, node_, std::span(axes.begin(), axes.size()))};
}

Array Array::cast(DType dtype) const {
  return {*kernel_, kernel_->ast_.cast(Op::CAST, node_, dtype)};
}
Array Array::bitcast(DType dtype) const {
  return {*kernel_, kernel_->ast_.cast(Op::BITCAST, node_, dtype)};
}

#define QUERN_X(function, op)                                      \
  Array function(Array a, Array b) {                               \
    return a.kernel().apply(Op::op, std::array<Operand, 2>{a, b}); \
  }                                                                \
  Array function(Array a, double b) {                              \
    return a.kernel().apply(Op::op, std::array<Operand, 2>{a, b}); \
  }                                                                \
  Array function(double a, Array b) {                              \
    return b.kernel().apply(Op::op, std::array<Operand, 2>{a, b}); \
  }
QUERN_ARRAY_BINARY(QUERN_X)
#undef QUERN_X

Array where(Array c, Operand a, Operand b) {
  return c.kernel().apply(Op::WHERE, std::array<Operand, 3>{c, a, b});
}
Array mulacc(Array a, Operand b, Operand c) {
  return a.kernel().apply(Op::MULACC, std::array<Operand, 3>{a, b, c});
}
Array operator-(Array a) { return a.kernel().apply(Op::NEG, std::array<Operand, 1>{a}); }
Array exp2(Array a) { return a.kernel().apply(Op::EXP2, std::array<Operand, 1>{a}); }
Array log2(Array a) { return a.kernel().apply(Op::LOG2, std::array<Operand, 1>{a}); }
Array sin(Array a) { return a.kernel().apply(Op::SIN, std::array<Operand, 1>{a}); }
Array sqrt(Array a) { return a.kernel().apply(Op::SQRT, std::array<Operand, 1>{a}); }

SInt KernelBuilder::variable(std::string name, int64_t min, int64_t max) {
  return SInt::variable(ast_.add_var({std::move(name), min, max}));
}

Array KernelBuilder::input(DType dtype, const Shape& shape) {
  ShapeTracker tracker = ShapeTracker::make(shape);
  BufferParam buffer;
  buffer.dtype = dtype;
  buffer.size = tracker.buffer_size(ast_.var_bounds());
  return wrap(ast_.load(ast_.add_buffer(buffer), dtype, std::move(tracker)));
}

Array KernelBuilder::constant(DType dtype, double value, const Shape& shape) {
  return wrap(number(value, dtype, shape));
}

Array KernelBuilder::value(const SInt& variable, DType dtype, const Shape& shape) {
  auto terms = variable.terms();
  if (terms.size() != 1 || terms[0].coef != 1 || terms[0].vars.size() != 1)
    raise<AstError>("value() takes a variable itself, not an expression of variables");
  View all = View::make(shape, Shape(shape.size(), 0), 0);
  return wrap(ast_.variable(dtype, terms[0].vars[0], ShapeTracker({all})));
}

void KernelBuilder::output(Array value) { outputs_.push_back({value.node(), AstNode::kNone}); }

void KernelBuilder::assign(Array target, Array value) {
  if (ast_.node(target.node()).op != Op::LOAD)
    raise<AstError>("assign: the target is no input of the kernel");
  outputs_.push_back({broadcast(value.node(), target.shape()), target.node()});
}

Array KernelBuilder::apply(Op op, std::span<const Operand> operands) {
  // The type of numbers, and the shape that all are repeated to.
  DType dtype;
  Shape shape;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Array* t = std::get_if<Array>(&operands[i]);
    if (!t) continue;
    if (&t->kernel() != this)
      raise<AstError>("{}: the operands belong to different kernels", quern::name(op));
    if (op != Op::WHERE || i > 0) dtype = t->dtype();
    if (shape.empty()) shape = t->shape();
    if (shape.size() != t->shape().size())
      raise<AstError>("{}: the operands have {} and {} axes; they must agree", quern::name(op),
                      shape.size(), t->shape().size());
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] == SInt(1)) shape[axis] = t->shape()[axis];
  }
  if (dtype.scalar == Scalar::Void)
    raise<AstError>("WHERE: one of the two values must be a Array, for its type");
  std::vector<NodeId> src;
  for (const Operand& operand : operands) {
    const Array* t = std::get_if<Array>(&operand);
    src.push_back(t ? broadcast(t->node(), shape)
                    : number(std::get<double>(operand), dtype, shape));
  }
  return wrap(ast_.alu(op, src));
}

NodeId KernelBuilder::number(double value, DType dtype, const Shape& shape) {
  bool fits =
      std::fabs(value) < 0x1p63 && static_cast<double>(static_cast<int64_t>(value)) == value;
  if (!dtype.is_float() && !fits) raise<AstError>("{} is no value of {}", value, to_string(dtype));
  int64_t bits = dtype.is_float() ? float_bits(value) : static_cast<int64_t>(value);
  return ast_.constant(dtype, bits, ShapeTracker({View::make(shape, Shape(shape.size(), 0), 0)}));
}

NodeId KernelBuilder::leaf(const AstNode& n, ShapeTracker tracker) {
  if (n.op == Op::LOAD) return ast_.load(n.buffer, n.dtype, std::move(tracker));
  return n.var == AstNode::kNone ? ast_.constant(n.dtype, n.value, std::move(tracker))
                                 : ast_.variable(n.dtype, n.var, std::move(tracker));
}

NodeId KernelBuilder::broadcast(NodeId node, const Shape& shape) {
  if (ast_.shape(node) == shape) return node;
  const AstNode& n = ast_.node(node);
  return is_leaf(n) ? leaf(n, ast_.tracker(node).expand(shape)) : ast_.expand(node, shape);
}

NodeId KernelBuilder::rebuild(const AstNode& n, std::span<const NodeId> renamed) {
  std::vector<NodeId> src;
  for (NodeId x : n.sources()) src.push_back(renamed[x]);
  bool casts = n.op == Op::CAST || n.op == Op::BITCAST;
  return casts ? ast_.cast(n.op, src[0], n.dtype) : ast_.alu(n.op, src);
}

NodeId KernelBuilder::move(NodeId root, const char* what, const Move& move) {
  std::vector<bool> needed = needed_for(ast_, root);
  for (NodeId id = 0; id <= root; ++id) {
    const AstNode& n = ast_.node(id);
    if (needed[id] && (n.is_reduce() || n.op == Op::EXPAND))
      raise<AstError>(
          "{} of a value that depends on a {}; only permute and expand are possible there", what,
          quern::name(n.op));
  }
  std::vector<NodeId> renamed(root + 1, AstNode::kNone);
  for (NodeId id = 0; id <= root; ++id) {
    if (!needed[id]) continue;
    AstNode n = ast_.node(id);
    renamed[id] = is_leaf(n) ? leaf(n, move(ast_.tracker(id))) : rebuild(n, renamed);
  }
  return renamed[root];
}

NodeId KernelBuilder::permute(NodeId root, std::span<const size_t> axes) {
  std::vector<bool> needed = needed_for(ast_, root);
  std::vector<NodeId> renamed(root + 1, AstNode::kNone);
  for (NodeId id = 0; id <= root; ++id) {
    if (!needed[id]) continue;
    AstNode n = ast_.node(id);
    if (is_leaf(n)) {
      renamed[id] = leaf(n, ast_.tracker(id).permute(axes));
    } else if (n.is_reduce()) {
      std::vector<int64_t> reduced;
      for (size_t i = 0; i < axes.size(); ++i)
        if (n.axes >> axes[i] & 1) reduced.push_back(static_cast<int64_t>(i));
      renamed[id] = ast_.reduce(n.op, renamed[n.src[0]], reduced);
    } else if (n.op == Op::EXPAND) {
      Shape shape;
      for (size_t axis : axes) shape.push_back(ast_.shape(id)[axis]);
      renamed[id] = ast_.expand(renamed[n.src[0]], shape);
    } else {
      renamed[id] = rebuild(n, renamed);
    }
  }
  return renamed[root];
}

Ast KernelBuilder::build() {
  if (outputs_.empty()) raise<AstError>("the kernel has no outputs");
  AstBuilder final;
  for (const VarParam& v : ast_.vars()) final.add_var(v);
  // Outputs first, then the inputs that are none.
  std::vector<uint32_t> number(ast_.buffers().size(), AstNode::kNone);
  std::vector<ShapeTracker> stored;
  for (const Output& out : outputs_) {
    BufferParam buffer;
    ShapeTracker tracker = ShapeTracker::make(ast_.shape(out.value));
    if (out.target == AstNode::kNone) {
      buffer.dtype = ast_.dtype(out.value);
      buffer.size = tracker.buffer_size(ast_.var_bounds());
    } else {
      uint32_t input = ast_.node(out.target).buffer;
      if (number[input] != AstNode::kNone) raise<AstError>("assign: an input is written twice");
      buffer = ast_.buffers()[input];
      tracker = ast_.tracker(out.target);
      number[input] = static_cast<uint32_t>(stored.size());
    }
    final.add_buffer(buffer);
    stored.push_back(std::move(tracker));
  }
  for (size_t i = 0; i < number.size(); ++i)
    if (number[i] == AstNode::kNone) number[i] = final.add_buffer(ast_.buffers()[i]);

  AstBuilder source = std::exchange(ast_, std::move(final));
  std::vector<NodeId> renamed(source.size()), stores;
  for (NodeId id = 0; id < source.size(); ++id) {
    AstNode n = source.node(id);
    if (n.op == Op::LOAD) n.buffer = number[n.buffer];
    if (is_leaf(n)) {
      renamed[id] = leaf(n, source.tracker(id));
    } else if (n.is_reduce()) {
      std::vector<int64_t> axes;
      for (int64_t axis = 0; axis < 64; ++axis)
        if (n.axes >> axis & 1) axes.push_back(axis);
      renamed[id] = ast_.reduce(n.op, renamed[n.src[0]], axes);
    } else if (n.op == Op::EXPAND) {
      renamed[id] = ast_.expand(renamed[n.src[0]], source.shape(id));
    } else {
      renamed[id] = rebuild(n, renamed);
    }
  }
  for (uint32_t i = 0; i < outputs_.size(); ++i)
    stores.push_back(
        ast_.store(i, ast_.buffers()[i].dtype, std::move(stored[i]), renamed[outputs_[i].value]));
  outputs_.clear();
  return ast_.finish(stores);
}

}  // namespace quern
