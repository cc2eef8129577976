#include "quern/codegen/lower/expand_access.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "quern/codegen/simplify/index_sum.h"
#include "quern/codegen/uop/rewrite.h"

namespace quern {
namespace {

// Splits the constant off an address.
std::pair<UOp, int64_t> base_and_offset(Simplifier& s, UOp u) {
  IndexSum sum = to_sum(u);
  int64_t offset = std::exchange(sum.constant, 0);
  return {from_sum(s, std::move(sum)), offset};
}

// The address is a multiple of `n` elements, provably.
bool is_multiple(UOp base, int64_t offset, int64_t n) {
  IndexSum sum = to_sum(base);
  int64_t g = std::gcd(n, offset);
  for (auto& t : sum.terms) g = std::gcd(g, t.coefficient);
  return g == n;
}

}  // namespace

// The node's values at each combination of positions of its LANEs, by substitution: index
// arithmetic folds best with numbers in the place of LANEs.
std::vector<UOp> AccessExpander::enumerate(UOp root) {
  std::unordered_map<UOp, std::vector<UOp>> values;
  for (UOp u : reachable({&root, 1})) {
    LaneMask mask = masks_[u->id];
    if (mask == 0) continue;
    std::vector<UOp>& out = values[u];
    int lanes = order_.lanes(mask);
    out.reserve(static_cast<size_t>(lanes));
    if (u->op == Op::LANE) {
      for (int i = 0; i < lanes; ++i) out.push_back(s_.graph().index(i));
      continue;
    }
    std::vector<std::vector<int64_t>> lane_of;
    for (UOp x : u->src())
      lane_of.push_back(masks_[x->id] ? order_.map(masks_[x->id], mask) : std::vector<int64_t>());
    std::vector<UOp> src(u->nsrc);
    for (int i = 0; i < lanes; ++i) {
      for (size_t j = 0; j < src.size(); ++j) {
        UOp x = u->src(j);
        src[j] =
            masks_[x->id] ? values[x][static_cast<size_t>(lane_of[j][static_cast<size_t>(i)])] : x;
      }
      out.push_back(s_.make(u->op, u->dtype, src, u->arg, u->args));
    }
  }
  return std::move(values[root]);
}

std::vector<AccessExpander::Lane> AccessExpander::lanes_of(UOp u, LaneMask mask) {
  size_t n = static_cast<size_t>(order_.lanes(mask));
  std::vector<Lane> lanes(n);
  for (size_t i = 0; i < n; ++i) lanes[i].lane = static_cast<int64_t>(i);

  IndexSum sum = to_sum(u->src(1));
  bool linear = std::ranges::all_of(sum.terms, [&](const IndexSum::Term& t) {
    return t.base->op == Op::LANE || masks_[t.base->id] == 0;
  });
  if (linear) {
    IndexSum rest;
    rest.constant = 0;
    for (auto& [base, coefficient] : sum.terms) {
      if (base->op != Op::LANE) {
        rest.terms.push_back({base, coefficient});
        continue;
      }
      std::vector<int64_t> at = order_.positions(order_.bit(base->arg), mask);
      for (size_t i = 0; i < n; ++i) lanes[i].offset += coefficient * at[i];
    }
    UOp base = from_sum(s_, std::move(rest));
    for (Lane& lane : lanes) {
      lane.base = base;
      lane.offset += sum.constant;
    }
  } else {
    LaneMask own = masks_[u->src(1)->id];
    std::vector<UOp> values = enumerate(u->src(1));
    std::vector<int64_t> at = order_.map(own, mask);
    for (size_t i = 0; i < n; ++i)
      std::tie(lanes[i].base, lanes[i].offset) =
          base_and_offset(s_, values[static_cast<size_t>(at[i])]);
  }

  if (UOp gate = u->gate()) {
    LaneMask own = masks_[gate->id];
    std::vector<UOp> values = own ? enumerate(gate) : std::vector<UOp>{gate};
    std::vector<int64_t> at = order_.map(own, mask);
    for (size_t i = 0; i < n; ++i) {
      UOp value = values[static_cast<size_t>(at[i])];
      lanes[i].gate = value->is_const(1) ? nullptr : value;
    }
  }
  return lanes;
}

// Sorts by address and cuts where the next address does not follow. Lanes that are always gated off
// are left out; lanes of one address stay together only if `u` is a load.
std::vector<AccessExpander::Run> AccessExpander::runs(UOp u, std::vector<Lane> lanes) {
  std::erase_if(lanes, [](const Lane& l) { return l.gate && l.gate->is_const(0); });
  auto gate_id = [](const Lane& l) { return l.gate ? l.gate->id + 1 : 0; };
  bool mixed_gates =
      std::ranges::any_of(lanes, [&](const Lane& l) { return l.gate != lanes[0].gate; });
  bool by_gate = mixed_gates && !target_.masked_memory;
  auto key = [&](const Lane& l) {
    return std::tuple(by_gate ? gate_id(l) : 0, l.base->id, l.offset, gate_id(l));
  };
  std::ranges::stable_sort(lanes, [&](const Lane& a, const Lane& b) { return key(a) < key(b); });

  std::vector<Run> out;
  for (const Lane& lane : lanes) {
    if (!out.empty()) {
      Lane& last = out.back().lanes.back();
      bool same_base = last.base == lane.base && (!by_gate || last.gate == lane.gate);
      if (same_base && u->op == Op::LOAD && last.offset == lane.offset && last.gate == lane.gate)
        continue;
      if (same_base && last.offset + 1 == lane.offset) {
        out.back().lanes.push_back(lane);
        continue;
      }
    }
    out.push_back({{lane}});
  }
  return out;
}

int AccessExpander::chunk(UOp, DType dtype, const Run& run, size_t start) const {
  int left = static_cast<int>(run.lanes.size() - start);
  int n = std::min(left, target_.memory_lanes(dtype));
  if (!target_.aligned_vectors) return n;
  int power = 1;
  while (power * 2 <= n && is_multiple(run.lanes[start].base, run.lanes[start].offset, power * 2))
    power *= 2;
  return power;
}

// One gate for a chunk: a scalar where all lanes agree, else those lanes of the vector.
UOp AccessExpander::chunk_gate(std::span<const Lane> lanes, UOp gate) {
  bool same = std::ranges::all_of(lanes, [&](const Lane& l) { return l.gate == lanes[0].gate; });
  if (same) return lanes[0].gate;
  std::vector<int64_t> at;
  for (const Lane& l : lanes) at.push_back(l.lane);
  return s_.gep(gate, at);
}

UOp AccessExpander::load_piece(UOp u, UOp gate, UOp barrier, std::span<const Lane> lanes) {
  std::vector<UOp> parts;
  std::vector<std::tuple<UOp, int64_t, UOp, int64_t>>
      where;  // base, offset, gate: lane of the parts
  int64_t total = 0;
  for (const Run& run : runs(u, {lanes.begin(), lanes.end()})) {
    for (size_t start = 0; start < run.lanes.size();) {
      int n = chunk(u->src(0), u->dtype, run, start);
      std::span<const Lane> part(run.lanes.data() + start, static_cast<size_t>(n));
      DType type = u->dtype.with_lanes(n);
      std::vector<UOp> src = {u->src(0), s_.add(part[0].base, part[0].offset)};
      if (UOp g = chunk_gate(part, gate)) {
        src.push_back(g);
        src.push_back(s_.graph().constant(type, u->alternative()->arg));
      }
      if (barrier) src.push_back(barrier);
      parts.push_back(s_.make(Op::LOAD, type, src));
      for (const Lane& l : part) where.emplace_back(l.base, l.offset, l.gate, total++);
      start += static_cast<size_t>(n);
    }
  }
  // Lanes that are never loaded get the alternative, which stands at the end.
  int64_t missing = total;
  bool any_missing = false;
  std::vector<int64_t> at;
  for (const Lane& l : lanes) {
    auto found = std::ranges::find_if(where, [&](const auto& w) {
      return std::get<0>(w) == l.base && std::get<1>(w) == l.offset && std::get<2>(w) == l.gate;
    });
    any_missing |= found == where.end();
    at.push_back(found == where.end() ? missing : std::get<3>(*found));
  }
  if (any_missing) parts.push_back(s_.graph().constant(u->dtype, u->alternative()->arg));
  return s_.gep(s_.concat(parts), at);
}

UOp AccessExpander::load(UOp u, UOp gate, UOp barrier) {
  LaneMask mask = masks_[u->id];
  std::vector<Lane> lanes = lanes_of(u, mask);
  // With vector Alu each piece of a value has loads of its own, so that overlapping windows are
  // reloaded rather than shuffled together.
  size_t width = target_.alu_lanes(u->dtype) > 1 ? static_cast<size_t>(target_.alu_lanes(u->dtype))
                                                 : lanes.size();
  std::vector<UOp> pieces;
  for (size_t start = 0; start < lanes.size(); start += width) {
    size_t n = std::min(width, lanes.size() - start);
    pieces.push_back(load_piece(u, gate, barrier, {lanes.data() + start, n}));
  }
  return s_.concat(pieces);
}

void AccessExpander::store(UOp u, UOp value, UOp gate, UOp barrier, LaneMask mask,
                           std::vector<UOp>& stores) {
  for (const Run& run : runs(u, lanes_of(u, mask))) {
    for (size_t start = 0; start < run.lanes.size();) {
      int n = chunk(u->src(0), u->dtype, run, start);
      std::span<const Lane> part(run.lanes.data() + start, static_cast<size_t>(n));
      std::vector<int64_t> at;
      for (const Lane& l : part) at.push_back(l.lane);
      std::vector<UOp> src = {u->src(0), s_.add(part[0].base, part[0].offset), s_.gep(value, at)};
      if (UOp g = chunk_gate(part, gate)) src.push_back(g);
      if (barrier) src.push_back(barrier);
      stores.push_back(s_.make(Op::STORE, Scalar::Void, src));
      start += static_cast<size_t>(n);
    }
  }
}

}  // namespace quern
