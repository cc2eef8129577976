#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/ast/param.h"
#include "quern/codegen/shape/shapetracker.h"
#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/view.h"
#include "quern/codegen/uop/dtype.h"
#include "quern/codegen/uop/op.h"

namespace quern {

using NodeId = uint32_t;

// A node of a kernel at tensor level. A value has a shape and an element type; the operands of an
// op agree in both (but for the condition of WHERE, which is bool).
//   LOAD        tracker, buffer: the elements of a buffer as the tracker shows them, in its type;
//               an image's are widened to float32
//   CONST       tracker, and value or var: one number seen through the tracker
//   SUM, MAX_REDUCE  src, axes: the reduced axes have size 1 afterwards. A SUM of bool is `or`; a
//               SUM of half or bfloat16 accumulates in float32 and rounds once
//   EXPAND      src, shape: repeats axes of size 1
//   STORE       src, tracker, buffer: casts to `dtype`, which is the buffer's (float32 for an
//               image, which rounds to its own); positions where a mask of the tracker says no are
//               not written
//   Alu ops     src
struct AstNode {
  static constexpr uint32_t kNone = UINT32_MAX;

  Op op = Op::CONST;
  DType dtype;
  uint8_t nsrc = 0;
  NodeId src[3] = {kNone, kNone, kNone};
  uint32_t shape = 0;        // number among Ast::shapes
  uint32_t tracker = kNone;  // number among Ast::trackers
  uint32_t buffer = kNone;
  uint32_t var = kNone;  // CONST: the variable whose value it is
  int64_t value = 0;     // CONST: the bits of a lane (eval.h), already rounded to dtype
  uint64_t axes = 0;     // of a reduce: bit i is axis i

  bool operator==(const AstNode&) const = default;
  std::span<const NodeId> sources() const { return {src, nsrc}; }
  bool is_reduce() const { return op == Op::SUM || op == Op::MAX_REDUCE; }
};

// A kernel: what to compute, not how. Immutable; made by AstBuilder, which checks everything that
// can be wrong, so that whoever holds an Ast may rely on it:
//   - sources stand before their users, and shapes and types fit;
//   - every valid access lies inside its buffer, for all values of the variables;
//   - output i stores to buffer i, each buffer is stored to at most once, no two positions store to
//     one element, and all STOREs have the same shape.
class QUERN_API Ast {
 public:
  std::span<const AstNode> nodes() const { return nodes_; }
  const AstNode& node(NodeId id) const { return nodes_[id]; }
  const Shape& shape(const AstNode& n) const { return shapes_[n.shape]; }
  const ShapeTracker& tracker(const AstNode& n) const { return trackers_[n.tracker]; }
  std::span<const ShapeTracker> trackers() const { return trackers_; }
  std::span<const Shape> shapes() const { return shapes_; }
  std::span<const BufferParam> buffers() const { return buffers_; }
  std::span<const VarParam> vars() const { return vars_; }
  std::span<const VarBounds> var_bounds() const { return var_bounds_; }
  // The STORE nodes, in order of their buffers.
  std::span<const NodeId> outputs() const { return outputs_; }
  int rank() const { return static_cast<int>(shapes_[nodes_[outputs_[0]].shape].size()); }

  // One operation an element of each Alu node over its shape, a reduce counting its source's
  // elements; CAST and BITCAST count nothing.
  SInt flops() const;
  // The sizes of all buffers; INT64_MAX if that is more.
  int64_t bytes() const;

 private:
  friend class AstBuilder;
  std::vector<AstNode> nodes_;
  std::vector<Shape> shapes_;
  std::vector<ShapeTracker> trackers_;
  std::vector<BufferParam> buffers_;
  std::vector<VarParam> vars_;
  std::vector<VarBounds> var_bounds_;
  std::vector<NodeId> outputs_;
};

// Makes the nodes of an Ast one by one. Equal nodes are one. Every call throws AstError if what it
// is given does not fit, and says what was expected; the builder is unchanged then.
// For writing kernels by hand see array.h.
class QUERN_API AstBuilder {
 public:
  uint32_t add_buffer(BufferParam buffer);
  uint32_t add_var(VarParam var);
  std::span<const BufferParam> buffers() const { return ast_.buffers_; }
  std::span<const VarParam> vars() const { return ast_.vars_; }

  NodeId load(uint32_t buffer, DType dtype, ShapeTracker tracker);
  NodeId constant(DType dtype, int64_t bits, ShapeTracker tracker);
  NodeId variable(DType dtype, uint32_t var, ShapeTracker tracker);
  NodeId alu(Op op, std::span<const NodeId> src);
  NodeId cast(Op op, NodeId src, DType dtype);  // CAST or BITCAST
  NodeId reduce(Op op, NodeId src, std::span<const int64_t> axes);
  NodeId expand(NodeId src, Shape shape);
  NodeId store(uint32_t buffer, DType dtype, ShapeTracker tracker, NodeId src);

  const Shape& shape(NodeId id) const { return ast_.shapes_[ast_.nodes_[id].shape]; }
  DType dtype(NodeId id) const { return ast_.nodes_[id].dtype; }
  const AstNode& node(NodeId id) const { return ast_.nodes_[id]; }
  const ShapeTracker& tracker(NodeId id) const { return ast_.trackers_[node(id).tracker]; }
  std::span<const VarBounds> var_bounds() const { return ast_.var_bounds_; }
  size_t size() const { return ast_.nodes_.size(); }

  // The kernel with these STOREs as outputs. The builder is empty afterwards.
  Ast finish(std::span<const NodeId> outputs);

 private:
  NodeId add(AstNode node);
  uint32_t intern(const Shape& shape);
  uint32_t intern(ShapeTracker tracker);
  AstNode with_tracker(Op op, DType dtype, ShapeTracker tracker);
  void check_source(NodeId src) const;
  void check_access(Op op, uint32_t buffer, DType dtype) const;
  void keep(const std::vector<bool>& needed);

  Ast ast_;
  std::unordered_multimap<uint64_t, NodeId> by_hash_;
  std::unordered_multimap<uint64_t, uint32_t> shape_by_hash_, tracker_by_hash_;
};

}  // namespace quern
