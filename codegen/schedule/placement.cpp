#include "quern/codegen/schedule/placement.h"

#include <algorithm>

namespace quern {
namespace {

class Placer {
 public:
  explicit Placer(const Schedule& schedule) : s_(schedule), ast_(schedule.ast()) {
    out_.places.resize(ast_.nodes().size());
    find_levels();
  }

  Placement run() {
    const Shape& shape = s_.shape(ast_.node(ast_.outputs()[0]));
    Position outer;
    Region looped;
    for (int i = 0; i < s_.rank(); ++i) {
      outer.loops.push_back(s_.is_reduced(i) ? Position::kZero : Position::kResult);
      if (s_.is_reduced(i) && shape[static_cast<size_t>(i)] != SInt(1))
        looped.axes |= uint64_t{1} << i;
    }
    looped.outside = outer;
    open(std::move(looped));
    out_.output = out_.regions[0].inside;
    for (NodeId id : ast_.outputs()) require(id, out_.output);

    // Users first, so that outer loops are numbered before the loops inside them.
    for (NodeId id = static_cast<NodeId>(ast_.nodes().size()); id-- > 0;) {
      const AstNode& n = ast_.node(id);
      for (size_t i = 0; i < out_.places[id].size(); ++i) {
        Position at = out_.places[id][i].at;
        if (n.is_reduce()) {
          int region = region_of(id, at);
          out_.places[id][i].region = region;
          at = out_.regions[static_cast<size_t>(region)].inside;
        }
        for (NodeId x : n.sources()) require(x, at);
      }
    }
    return std::move(out_);
  }

 private:
  void find_levels() {
    levels_.resize(ast_.nodes().size(), 0);
    for (NodeId id = 0; id < levels_.size(); ++id) {
      for (NodeId x : ast_.node(id).sources()) levels_[id] = std::max(levels_[id], levels_[x]);
      levels_[id] += ast_.node(id).is_reduce();
    }
  }

  void require(NodeId id, Position at) {
    const Shape& shape = s_.shape(ast_.node(id));
    for (size_t i = 0; i < at.loops.size(); ++i)
      if (shape[i] == SInt(1)) at.loops[i] = Position::kZero;
    auto& list = out_.places[id];
    if (std::ranges::none_of(list, [&](const auto& p) { return p.at == at; }))
      list.push_back({std::move(at), -1});
  }

  int region_of(NodeId id, const Position& at) {
    uint64_t axes = s_.space().reduce_axes[id];
    bool counts = counts_only(id, axes);
    // Where a region of two stages begins, it does not matter in which stage of another one.
    bool staged = !counts && (is_grouped(axes) || is_tiled(axes, at));
    auto same = std::ranges::find_if(out_.regions, [&](const Region& r) {
      return r.level == levels_[id] && r.axes == axes && r.counts == counts &&
             r.outside.loops == at.loops && (staged || r.outside.stage == at.stage);
    });
    if (same == out_.regions.end()) {
      Region region;
      region.axes = axes;
      region.level = levels_[id];
      region.counts = counts;
      region.outside = at;
      open(std::move(region));
      same = out_.regions.end() - 1;
    }
    if (std::ranges::find(same->reduces, id) == same->reduces.end()) same->reduces.push_back(id);
    return static_cast<int>(same - out_.regions.begin());
  }

  void open(Region region) {
    auto number = static_cast<int16_t>(out_.regions.size());
    bool reduces = number > 0 && !region.counts;
    region.grouped = reduces && is_grouped(region.axes);
    region.tiled = reduces && is_tiled(region.axes, region.outside);
    region.inside = region.outside;
    for (size_t i = 0; i < region.inside.loops.size(); ++i)
      if (region.axes >> i & 1) region.inside.loops[i] = number;
    if (region.has_stages()) region.inside.stage = number;
    out_.regions.push_back(std::move(region));
  }

  bool is_grouped(uint64_t axes) const { return (s_.bases(AxisKind::Group) & axes) != 0; }

  bool is_tiled(uint64_t axes, const Position& outside) const {
    if (!(s_.bases(AxisKind::Block) & axes)) return false;
    for (size_t i = 0; i < outside.loops.size(); ++i)
      if (outside.loops[i] == Position::kResult && (s_.bases(AxisKind::Tile) >> i & 1)) return true;
    return false;
  }

  bool counts_only(NodeId reduce, uint64_t axes) const {
    std::vector<bool> under(reduce + 1, false);
    under[reduce] = true;
    for (NodeId id = reduce + 1; id-- > 0;) {
      if (!under[id]) continue;
      const AstNode& n = ast_.node(id);
      if (id != reduce && n.is_reduce()) return false;
      for (NodeId x : n.sources()) under[x] = true;
      if (n.op != Op::LOAD) continue;
      const View& view = s_.tracker(n).views().back();
      for (size_t i = 0; i < view.shape().size(); ++i)
        if (axes >> i & 1 && (view.strides()[i] != SInt(0) || view.is_masked())) return false;
    }
    return true;
  }

  const Schedule& s_;
  const Ast& ast_;
  Placement out_;
  std::vector<int> levels_;  // by node
};

}  // namespace

Placement place(const Schedule& schedule) { return Placer(schedule).run(); }

DType accumulator_type(const AstNode& reduce) {
  bool narrow = reduce.dtype.scalar == Scalar::Float16 || reduce.dtype.scalar == Scalar::BFloat16;
  return reduce.op == Op::SUM && narrow ? DType(Scalar::Float32) : reduce.dtype;
}

bool Placement::has_lanes(const Region& region, const Axis& axis) const {
  int16_t loops = region.outside.loops[static_cast<size_t>(axis.base)];
  if (axis.kind == AxisKind::Upcast) return loops == Position::kResult;
  return axis.kind == AxisKind::Unroll && loops >= 0 && !regions[static_cast<size_t>(loops)].counts;
}

int64_t scratch_bytes(const Schedule& schedule) {
  bool has_stages = schedule.has(AxisKind::Group) || schedule.has(AxisKind::Tile);
  if (!has_stages) return 0;
  Placement placement = place(schedule);
  int64_t bytes = 0;
  for (const Region& region : placement.regions) {
    if (!region.has_stages()) continue;
    int64_t slots = region.grouped ? schedule.items() : 1;
    for (const Axis& a : schedule.axes()) {
      bool is_tile = region.tiled && a.kind == AxisKind::Tile &&
                     region.outside.loops[static_cast<size_t>(a.base)] == Position::kResult;
      if (is_tile || placement.has_lanes(region, a)) slots *= a.size.constant();
    }
    for (NodeId id : region.reduces)
      bytes += slots * accumulator_type(schedule.ast().node(id)).itemsize();
  }
  return bytes;
}

}  // namespace quern
