#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "codegen/ast.h"

namespace quern {

class KernelBuilder;

// A value of a kernel that is being written: a small handle, valid as long as its KernelBuilder.
// Values have a shape and an element type; both are checked as soon as an op is written, by
// AstError.
//
//   KernelBuilder k;
//   Tensor x = k.input(Scalar::Float32, {128, 1000});
//   Tensor e = exp2((x - x.max(1)) * 1.4426950408889634);
//   k.output(e / e.sum(1));
//   Ast softmax = k.build();
//
// Operands of different shapes are broadcast along axes of size 1; ranks must agree. A number
// stands for a constant of the other operand's type.
class Tensor {
 public:
  const Shape& shape() const;
  DType dtype() const;

  // Movement: of inputs and constants without limits, of computed values by moving what they are
  // computed from; where a reduce stands in between, only permute and expand are possible.
  Tensor reshape(const Shape& shape) const;
  Tensor permute(std::span<const size_t> axes) const;
  Tensor permute(std::initializer_list<size_t> axes) const {
    return permute(std::span(axes.begin(), axes.size()));
  }
  Tensor expand(const Shape& shape) const;
  // The added positions hold 0.
  Tensor pad(std::span<const PadDim> pads) const;
  Tensor pad(std::initializer_list<PadDim> pads) const {
    return pad(std::span(pads.begin(), pads.size()));
  }
  Tensor shrink(std::span<const MaskDim> parts) const;
  Tensor shrink(std::initializer_list<MaskDim> parts) const {
    return shrink(std::span(parts.begin(), parts.size()));
  }
  // Every |step|-th position of each axis, backwards if step is negative.
  Tensor stride(std::span<const int64_t> steps) const;
  Tensor stride(std::initializer_list<int64_t> steps) const {
    return stride(std::span(steps.begin(), steps.size()));
  }

  // Reduced axes stay, with size 1. A sum of half or bfloat16 accumulates in float32.
  Tensor sum(std::initializer_list<int64_t> axes) const;
  Tensor sum(int64_t axis) const { return sum({axis}); }
  Tensor max(std::initializer_list<int64_t> axes) const;
  Tensor max(int64_t axis) const { return max({axis}); }

  Tensor cast(DType dtype) const;
  Tensor bitcast(DType dtype) const;

  NodeId node() const { return node_; }
  KernelBuilder& kernel() const { return *kernel_; }

 private:
  friend class KernelBuilder;
  Tensor(KernelBuilder& kernel, NodeId node) : kernel_(&kernel), node_(node) {}

  KernelBuilder* kernel_;
  NodeId node_;
};

// A number or a Tensor.
using Operand = std::variant<Tensor, double>;

// What the ops mean: op.h.
#define QUERN_TENSOR_BINARY(X)                                                            \
  X(operator+, ADD)                                                                       \
  X(operator-, SUB)                                                                       \
  X(operator*, MUL) X(operator/, DIV) X(operator%, MOD) X(operator^, XOR) X(maximum, MAX) \
      X(less, CMPLT) X(equal, CMPEQ)
#define QUERN_X(function, op)          \
  Tensor function(Tensor a, Tensor b); \
  Tensor function(Tensor a, double b); \
  Tensor function(double a, Tensor b);
QUERN_TENSOR_BINARY(QUERN_X)
#undef QUERN_X
Tensor operator-(Tensor a);
Tensor where(Tensor condition, Operand a, Operand b);
Tensor mulacc(Tensor a, Operand b, Operand c);
Tensor exp2(Tensor a);
Tensor log2(Tensor a);
Tensor sin(Tensor a);
Tensor sqrt(Tensor a);

// Collects one kernel. Buffers are numbered when it is built: the outputs in the order in which
// they were given, then the inputs that are not outputs as well, in the order in which they were
// declared; a launch takes them in that order.
class KernelBuilder {
 public:
  // An int32 argument of the launch, for use in shapes and as a value.
  SInt variable(std::string name, int64_t min, int64_t max);
  // A row-major buffer of that shape, at the largest values of its variables.
  Tensor input(DType dtype, const Shape& shape);
  Tensor constant(DType dtype, double value, const Shape& shape);
  // The value of a variable.
  Tensor value(const SInt& variable, DType dtype, const Shape& shape);

  // A new row-major buffer for the value.
  void output(Tensor value);
  // Writes the value over an input, element for element; `target` may be a moved view of an input.
  void assign(Tensor target, Tensor value);

  // The kernel. The builder is empty afterwards.
  Ast build();

  // What the ops are made with; of use for generic code.
  Tensor apply(Op op, std::span<const Operand> operands);

 private:
  friend class Tensor;
  struct Output {
    NodeId value;
    NodeId target;  // the input that is written over, or AstNode::kNone
  };
  using Move = std::function<ShapeTracker(const ShapeTracker&)>;

  Tensor wrap(NodeId node) { return Tensor(*this, node); }
  NodeId broadcast(NodeId node, const Shape& shape);
  NodeId number(double value, DType dtype, const Shape& shape);
  NodeId leaf(const AstNode& n, ShapeTracker tracker);
  // The value with `move` applied to every leaf that it is computed from.
  NodeId move(NodeId root, const char* what, const Move& move);
  NodeId permute(NodeId root, std::span<const size_t> axes);
  NodeId rebuild(const AstNode& n, std::span<const NodeId> renamed);

  AstBuilder ast_;
  std::vector<Output> outputs_;
};

}  // namespace quern
