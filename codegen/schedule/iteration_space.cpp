#include "quern/codegen/schedule/iteration_space.h"

#include <algorithm>

#include "quern/codegen/error.h"

namespace quern {
namespace {

// An axis of the new space before merging: the AST's axis, in those nodes that have this size along
// it.
struct Dim {
  size_t axis;
  SInt size;
};

// The distinct sizes other than 1 along each of the AST's axes, axis by axis.
std::vector<Dim> find_dims(const Ast& ast) {
  std::vector<Dim> dims;
  for (size_t axis = 0; axis < static_cast<size_t>(ast.rank()); ++axis) {
    size_t first = dims.size();
    for (const AstNode& n : ast.nodes()) {
      const SInt& size = ast.shape(n)[axis];
      bool known = size == 1 || std::any_of(dims.begin() + static_cast<int64_t>(first), dims.end(),
                                            [&](const Dim& d) { return d.size == size; });
      if (!known) dims.push_back({axis, size});
    }
  }
  return dims;
}

uint64_t reduced_dims(const Ast& ast, const AstNode& n, std::span<const Dim> dims) {
  if (!n.is_reduce()) return 0;
  const Shape& shape = ast.shape(ast.node(n.src[0]));
  uint64_t bits = 0;
  for (size_t i = 0; i < dims.size(); ++i)
    if (n.axes >> dims[i].axis & 1 && shape[dims[i].axis] == dims[i].size) bits |= uint64_t{1} << i;
  return bits;
}

bool has(const Shape& shape, const Dim& dim) { return shape[dim.axis] == dim.size; }

bool is_unmasked(const View& view, size_t axis) {
  if (!view.is_masked()) return true;
  const auto& [begin, end] = view.mask()[axis];
  return begin == SInt(0) && end == view.shape()[axis];
}

// `outer` and `inner` may be one axis of outer.size * inner.size.
bool can_merge(const Ast& ast, const Dim& outer, const Dim& inner, size_t at,
               std::span<const uint64_t> reduce_axes) {
  if (!outer.size.is_constant() || !inner.size.is_constant()) return false;
  if (outer.size == SInt(0) || inner.size == SInt(0)) return false;
  for (const AstNode& n : ast.nodes())
    if (has(ast.shape(n), outer) != has(ast.shape(n), inner)) return false;
  for (uint64_t bits : reduce_axes)
    if ((bits >> at & 1) != (bits >> (at + 1) & 1)) return false;
  for (const ShapeTracker& tracker : ast.trackers()) {
    const View& view = tracker.views().back();
    if (!has(view.shape(), outer)) continue;
    if (view.strides()[outer.axis] != view.strides()[inner.axis] * inner.size) return false;
    if (!is_unmasked(view, outer.axis) || !is_unmasked(view, inner.axis)) return false;
  }
  return true;
}

// A run of dims that becomes one axis.
struct Group {
  std::vector<Dim> dims;
  SInt size = 1;
};

Shape map_shape(const Shape& shape, std::span<const Group> groups) {
  Shape out;
  for (const Group& g : groups) out.push_back(has(shape, g.dims[0]) ? g.size : SInt(1));
  return out;
}

ShapeTracker map_tracker(const ShapeTracker& tracker, std::span<const Group> groups) {
  std::vector<View> views(tracker.views().begin(), tracker.views().end());
  View last = views.back();
  Shape shape = map_shape(last.shape(), groups);
  Shape strides;
  Mask mask;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Dim& inner = groups[i].dims.back();
    bool present = has(last.shape(), inner);
    strides.push_back(present ? last.strides()[inner.axis] : SInt(0));
    if (!last.is_masked()) continue;
    if (!present) mask.push_back({0, 1});
    else if (groups[i].dims.size() > 1) mask.push_back({0, groups[i].size});
    else mask.push_back(last.mask()[inner.axis]);
  }
  // A mask on an axis of size 1 either covers it or leaves nothing valid.
  for (size_t axis = 0; axis < last.shape().size(); ++axis)
    if (last.shape()[axis] == SInt(1) && !is_unmasked(last, axis)) {
      if (groups.empty()) return tracker;
      mask[0] = {0, 0};
    }
  views.back() = View::make(std::move(shape), std::move(strides), last.offset(), std::move(mask));
  return ShapeTracker(std::move(views));
}

}  // namespace

IterationSpace simplify_space(const Ast& ast) {
  std::vector<Dim> dims = find_dims(ast);
  if (dims.size() > 64)
    raise<AstError>("the kernel's nodes have {} different axes; at most 64 are supported",
                    dims.size());
  std::vector<uint64_t> reduce_axes;
  for (const AstNode& n : ast.nodes()) reduce_axes.push_back(reduced_dims(ast, n, dims));

  std::vector<Group> groups;
  std::vector<size_t> group_of(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    bool joins = i > 0 && can_merge(ast, dims[i - 1], dims[i], i - 1, reduce_axes);
    if (!joins) groups.emplace_back();
    groups.back().dims.push_back(dims[i]);
    groups.back().size = groups.back().size * dims[i].size;
    group_of[i] = groups.size() - 1;
  }

  IterationSpace out;
  for (const Group& g : groups) out.full_shape.push_back(g.size);
  for (uint64_t bits : reduce_axes) {
    uint64_t mapped = 0;
    for (size_t i = 0; i < dims.size(); ++i)
      if (bits >> i & 1) mapped |= uint64_t{1} << group_of[i];
    out.reduce_axes.push_back(mapped);
    out.reduced |= mapped;
  }
  for (const Shape& shape : ast.shapes()) out.shapes.push_back(map_shape(shape, groups));
  for (const ShapeTracker& tracker : ast.trackers())
    out.trackers.push_back(map_tracker(tracker, groups));
  return out;
}

}  // namespace quern
