#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quern/codegen/uop/arena.h"
#include "quern/codegen/uop/dtype.h"
#include "quern/codegen/uop/op.h"

namespace quern {

struct Node;

// A uop: a handle to an immutable node. Nodes live as long as their Graph; equal nodes of one graph
// are the same pointer.
using UOp = const Node*;

// The sources and arguments of each op (stages and meaning: op.h). `arg` is one integer, `args` a
// list.
//
//   CONST          arg: the lane's bits (see lane_bits below), the same in every lane
//   VCONST         args: the bits of each lane
//   DEFINE_GLOBAL  arg: buffer index; args: {elements, 1 if written, image height, image width};
//                  dtype: what the memory holds (height and width are 0 for a plain buffer)
//   DEFINE_LOCAL   arg: number; args: {elements}
//   DEFINE_VAR     arg: variable index; args: {min, max}; dtype Index
//   DEFINE_ACC     src: initial value; arg: number
//   SPECIAL        src: size; arg: dimension; args: {SpecialKind}; counts 0..size-1. Item is the
//                  number of a work item among those of all groups
//   LANE           arg: axis; args: {size}: the position along an upcast or unrolled axis; exists
//                  until `expand` turns it into lanes
//   RANGE          src: size; arg: number; args: {axis}: a loop variable, counts 0..size-1
//   END            src: the RANGE that ends
//   IF, ENDIF      src: bool condition / the IF
//   BARRIER        src: what must have happened before (STOREs, BARRIERs; RANGEs and SPECIALs say
//                  where it stands), then RANGEs whose loops are over; args: {number of the former}
//   LOAD           src: buffer, index [, gate, alternative] [, BARRIER]; where the gate is false
//                  the lane is the alternative and memory is not touched. The index is a scalar: a
//                  dtype of n lanes loads n consecutive elements. The gate has 1 or n lanes.
//   STORE          src: buffer, index, value [, gate] [, BARRIER]; dtype Void
//   ASSIGN         src: DEFINE_ACC, value: sets the accumulator. As a source of others it stands
//                  for the accumulator's value after the loops in which the ASSIGN lies
//   REDUCE         src: values v0..vn-1, then RANGEs; arg: ADD or MAX (as an Op); args: {n}, and
//                  until `expand` {n, axis, size, ..}: LANEs that are reduced as well.
//                  acc = acc op v0 op v1 .. in each iteration of the ranges
//   VECTORIZE      src: one scalar (broadcast to all lanes), or values whose lanes are concatenated
//   GEP            args: which lane of the source becomes lane i
//   WMMA           arg: number of the tensor core descriptor in the target
enum class SpecialKind : uint8_t { Group, Local, Task, Item };

struct Node {
  Op op;
  DType dtype;
  uint32_t id;  // creation order: sources have smaller ids than their users
  uint32_t nsrc;
  int64_t vmin;  // bounds of every lane of an integer, bool or Index value that is not poisoned
  int64_t vmax;  // by wrapping; for other types the whole int64 range
  int64_t arg;
  std::span<const int64_t> args;

  std::span<const UOp> src() const { return {reinterpret_cast<const UOp*>(this + 1), nsrc}; }
  UOp src(size_t i) const { return src()[i]; }
  int lanes() const { return dtype.lanes; }
  bool is_const() const { return op == Op::CONST; }
  bool is_const(int64_t bits) const { return op == Op::CONST && arg == bits; }

  // LOAD and STORE: the gate, or null.
  UOp gate() const;
  // LOAD: the value where the gate is false, or null.
  UOp alternative() const;
  // LOAD and STORE: the BARRIER that they come after, or null.
  UOp barrier() const;
  // REDUCE: its parts.
  std::span<const UOp> reduce_values() const { return src().first(static_cast<size_t>(args[0])); }
  std::span<const UOp> reduce_ranges() const { return src().subspan(static_cast<size_t>(args[0])); }
};

// Owns and hash-conses nodes. Not thread safe; deterministic: the same calls give the same ids.
class Graph {
 public:
  Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // The one way to make a node. Throws std::logic_error if the sources do not fit the op (a bug in
  // a pass, never caused by user input).
  UOp make(Op op, DType dtype, std::span<const UOp> src, int64_t arg = 0,
           std::span<const int64_t> args = {});
  UOp make(Op op, DType dtype, std::initializer_list<UOp> src, int64_t arg = 0,
           std::initializer_list<int64_t> args = {}) {
    return make(op, dtype, std::span(src.begin(), src.size()), arg,
                std::span(args.begin(), args.size()));
  }

  // Constants. `bits` as lane_bits; for Index and integers the value itself.
  UOp constant(DType dtype, int64_t bits);
  UOp constant_float(DType dtype, double value);
  UOp index(int64_t value) { return constant(Scalar::Index, value); }
  UOp boolean(bool value) { return constant(Scalar::Bool, value); }

  // All nodes in order of id.
  std::span<const UOp> nodes() const { return nodes_; }
  size_t size() const { return nodes_.size(); }
  // A fresh number for RANGE, DEFINE_ACC, DEFINE_LOCAL.
  int64_t fresh() { return next_number_++; }

 private:
  void rehash();

  Arena arena_;
  std::vector<UOp> nodes_;
  std::vector<UOp> table_;  // open addressing, power of two
  int64_t next_number_ = 0;
};

// The nodes that `roots` depend on, themselves included, in order of id. Scratch space is linear in
// the graph's size.
std::vector<UOp> reachable(std::span<const UOp> roots);

}  // namespace quern
