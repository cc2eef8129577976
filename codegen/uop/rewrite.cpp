#include "quern/codegen/uop/rewrite.h"

#include <algorithm>

namespace quern {

UOp with_src(Graph& graph, UOp u, std::span<const UOp> src) {
  if (std::ranges::equal(u->src(), src)) return u;
  return graph.make(u->op, u->dtype, src, u->arg, u->args);
}

}  // namespace quern
