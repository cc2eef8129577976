#pragma once

#include <cstdint>
#include <vector>

#include "quern/codegen/ast/ast.h"

namespace quern {

// An AST's iteration space in as few axes as possible.
//
// Axes of size 1 go. Where nodes have different sizes along one of the AST's axes (two reduces of
// different lengths in one kernel) each size is an axis of its own. Neighbours are merged where
// every access walks through both with one stride and without a mask, and every node has both or
// neither.
struct IterationSpace {
  Shape full_shape;
  uint64_t reduced = 0;  // bit i: some reduce sums over axis i
  // By the AST's numbers of shapes and trackers. A tracker's last view has the new axes.
  std::vector<Shape> shapes;
  std::vector<ShapeTracker> trackers;
  // By node: the new axes that a reduce sums over, as bits.
  std::vector<uint64_t> reduce_axes;
};

IterationSpace simplify_space(const Ast& ast);

}  // namespace quern
