#pragma once

#include <vector>

#include "quern/codegen/ast/ast.h"
#include "tests/kernel_check.h"

namespace quern::test {

// What a kernel computes, straight from its AST: each node over its whole shape, element by
// element, with ShapeTracker::expr_index and eval(). Sums add in order of the axes. `buffers` holds
// every buffer of the kernel, `vars` a value for each variable; the stored outputs are in the
// result.
std::vector<Values> evaluate(const Ast& ast, std::vector<Values> buffers,
                             const std::vector<int64_t>& vars = {});

}  // namespace quern::test
