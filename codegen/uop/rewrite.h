#pragma once

#include <span>
#include <vector>

#include "quern/codegen/uop/uop.h"

namespace quern {

// The same node with other sources; the node itself if they are the ones it has.
UOp with_src(Graph& graph, UOp u, std::span<const UOp> src);

// Rebuilds all that `root` depends on, sources first, without recursion. `f(u, src)` gets each old
// node with its new sources and returns the replacement; `with_src(graph, u, src)` leaves it as it
// is.
template <class F>
UOp rewrite(UOp root, F&& f) {
  std::vector<UOp> replacement(root->id + 1, nullptr);
  std::vector<UOp> src;
  for (UOp u : reachable({&root, 1})) {
    src.clear();
    for (UOp s : u->src()) src.push_back(replacement[s->id]);
    replacement[u->id] = f(u, std::span<const UOp>(src));
  }
  return replacement[root->id];
}

}  // namespace quern
