#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/ast/ast.h"

namespace quern {

class KernelBuilder;

// A value of a kernel that is being written: a small handle, valid as long as its KernelBuilder.
// Values have a shape and an element type; both are checked as soon as an op is written, by
// AstError.
//
//   KernelBuilder k;
//   Array x = k.input(Scalar::Float32, {128, 1000});
//   Array e = exp2((x - x.max(1)) * 1.4426950408889634);
//   k.output(e / e.sum(1));
//   Ast softmax = k.build();
//
// Operands of different shapes are broadcast along axes of size 1; ranks must agree. A number
// stands for a constant of the other operand's type.
class QUERN_API Array {
 public:
  const Shape& shape() const;
  DType dtype() const;

  // Movement: of inputs and constants without limits, of computed values by moving what they are
  // computed from; where a reduce stands in between, only permute and expand are possible.
  Array reshape(const Shape& shape) const;
  Array permute(std::span<const size_t> axes) const;
  Array permute(std::initializer_list<size_t> axes) const {
    return permute(std::span(axes.begin(), axes.size()));
  }
  Array expand(const Shape& shape) const;
  // The added positions hold 0.
  Array pad(std::span<const PadDim> pads) const;
  Array pad(std::initializer_list<PadDim> pads) const {
    return pad(std::span(pads.begin(), pads.size()));
  }
  Array shrink(std::span<const MaskDim> parts) const;
  Array shrink(std::initializer_list<MaskDim> parts) const {
    return shrink(std::span(parts.begin(), parts.size()));
  }
  // Every |step|-th position of each axis, backwards if step is negative.
  Array stride(std::span<const int64_t> steps) const;
  Array stride(std::initializer_list<int64_t> steps) const {
    return stride(std::span(steps.begin(), steps.size()));
  }

  // Reduced axes stay, with size 1. A sum of half or bfloat16 accumulates in float32.
  Array sum(std::initializer_list<int64_t> axes) const;
  Array sum(int64_t axis) const { return sum({axis}); }
  Array max(std::initializer_list<int64_t> axes) const;
  Array max(int64_t axis) const { return max({axis}); }

  Array cast(DType dtype) const;
  Array bitcast(DType dtype) const;

  NodeId node() const { return node_; }
  KernelBuilder& kernel() const { return *kernel_; }

 private:
  friend class KernelBuilder;
  Array(KernelBuilder& kernel, NodeId node) : kernel_(&kernel), node_(node) {}

  KernelBuilder* kernel_;
  NodeId node_;
};

// A number or an Array.
using Operand = std::variant<Array, double>;

// What the ops mean: uop/op.h.
#define QUERN_ARRAY_BINARY(X)                                                          \
  X(operator+, ADD)                                                                    \
  X(operator-, SUB)                                                                    \
  X(operator*, MUL)                                                                    \
  X(operator/, DIV) X(operator%, MOD) X(operator^, XOR) X(maximum, MAX) X(less, CMPLT) \
      X(equal, CMPEQ)
#define QUERN_X(function, op)                  \
  QUERN_API Array function(Array a, Array b);  \
  QUERN_API Array function(Array a, double b); \
  QUERN_API Array function(double a, Array b);
QUERN_ARRAY_BINARY(QUERN_X)
#undef QUERN_X
QUERN_API Array operator-(Array a);
QUERN_API Array where(Array condition, Operand a, Operand b);
QUERN_API Array mulacc(Array a, Operand b, Operand c);
QUERN_API Array exp2(Array a);
QUERN_API Array log2(Array a);
QUERN_API Array sin(Array a);
QUERN_API Array sqrt(Array a);

// Collects one kernel. Buffers are numbered when it is built: the outputs in the order in which
// they were given, then the inputs that are not outputs as well, in the order in which they were
// declared; a launch takes them in that order.
class QUERN_API KernelBuilder {
 public:
  // An int32 argument of the launch, for use in shapes and as a value.
  SInt variable(std::string name, int64_t min, int64_t max);
  // A row-major buffer of that shape, at the largest values of its variables.
  Array input(DType dtype, const Shape& shape);
  Array constant(DType dtype, double value, const Shape& shape);
  // The value of a variable.
  Array value(const SInt& variable, DType dtype, const Shape& shape);

  // A new row-major buffer for the value.
  void output(Array value);
  // Writes the value over an input, element for element; `target` may be a moved view of an input.
  void assign(Array target, Array value);

  // The kernel. The builder is empty afterwards.
  Ast build();

  // What the ops are made with; of use for generic code.
  Array apply(Op op, std::span<const Operand> operands);

 private:
  friend class Array;
  struct Output {
    NodeId value;
    NodeId target;  // the input that is written over, or AstNode::kNone
  };
  using Move = std::function<ShapeTracker(const ShapeTracker&)>;

  Array wrap(NodeId node) { return Array(*this, node); }
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
