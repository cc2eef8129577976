#pragma once

#include <string_view>

#include "quern/codegen/ast/ast.h"

namespace quern::test {

// The kernels of tests/codegen/ir, by name. Throws std::out_of_range for another name.
Ast ir_kernel(std::string_view name);

}  // namespace quern::test
