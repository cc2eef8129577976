#include "quern/codegen/lower/loop_nest.h"

#include <algorithm>

#include "quern/codegen/error.h"

namespace quern {

LoopNest::LoopNest(std::span<const UOp> uops, std::span<const Accumulator> accumulators) {
  size_t ids = uops.empty() ? 0 : uops.back()->id + 1;
  for (UOp u : uops)
    if (u->op == Op::RANGE) ranges_.push_back(u);
  if (ranges_.size() > kMaxLoops)
    raise<CompileError>("the kernel needs {} loops; at most {} are supported", ranges_.size(),
                        kMaxLoops);
  std::ranges::sort(ranges_, {}, [](UOp r) { return r->arg; });
  number_.assign(ids, -1);
  for (size_t i = 0; i < ranges_.size(); ++i) number_[ranges_[i]->id] = static_cast<int>(i);

  std::vector<int> role_of(ids, -1);
  for (const Accumulator& a : accumulators) {
    LoopSet own;
    for (UOp r : a.ranges) own.set(static_cast<size_t>(number_[r->id]));
    role_of[a.define->id] = static_cast<int>(roles_.size());
    roles_.push_back({Role::Define, own});
    role_of[a.assign->id] = static_cast<int>(roles_.size());
    roles_.push_back({Role::Assign, own});
  }
  for (UOp u : uops) {
    if (u->op != Op::BARRIER) continue;
    LoopSet own;
    for (UOp r : u->src().subspan(static_cast<size_t>(u->args[0])))
      own.set(static_cast<size_t>(number_[r->id]));
    role_of[u->id] = static_cast<int>(roles_.size());
    roles_.push_back({Role::Barrier, own});
  }
  outer_.resize(ranges_.size());
  exported_.resize(ids);
  loop_of_.assign(ids, -1);
  while (propagate(uops, role_of)) {
  }
  for (const LoopSet& set : outer_) parent_.push_back(innermost(set));
}

int LoopNest::innermost(const LoopSet& set) {
  for (int i = kMaxLoops; i-- > 0;)
    if (set[static_cast<size_t>(i)]) return i;
  return -1;
}

LoopNest::LoopSet LoopNest::around(const LoopSet& own) const {
  LoopSet set;
  for (size_t i = 0; i < ranges_.size(); ++i)
    if (own[i]) set |= outer_[i];
  return set & ~own;
}

// One pass in order of id; true if a loop turned out to lie in more loops than was known.
// Accumulators that share a loop all lie in whatever encloses one of them, hence the repetition.
bool LoopNest::propagate(std::span<const UOp> uops, const std::vector<int>& role_of) {
  bool changed = false;
  for (UOp u : uops) {
    LoopSet set;
    for (UOp s : u->src()) set |= exported_[s->id];
    LoopSet exported = set;
    if (u->op == Op::RANGE) {
      size_t loop = static_cast<size_t>(number_[u->id]);
      set |= outer_[loop];
      set.set(loop);
      exported = set;
    } else if (role_of[u->id] >= 0) {
      const Role& role = roles_[static_cast<size_t>(role_of[u->id])];
      switch (role.kind) {
        case Role::Define:
          set |= around(role.own);
          exported = set | role.own;
          break;
        case Role::Assign: exported = set & ~role.own; break;
        case Role::Barrier: exported = set = set & ~role.own; break;
      }
    }
    exported_[u->id] = exported;
    loop_of_[u->id] = innermost(set);
    LoopSet outside;
    for (size_t i = 0; i < ranges_.size(); ++i) {
      if (!set[i]) continue;
      if ((outside & ~outer_[i]).any()) {
        outer_[i] |= outside;
        changed = true;
      }
      outside.set(i);
    }
  }
  return changed;
}

}  // namespace quern
