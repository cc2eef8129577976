#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "quern/codegen/uop/uop.h"

namespace quern::uop_text {

// What is wrong with making such a node, as "expected ...", or an empty text. Stricter than
// Graph::make, which relies on passes for the rest: a node that passes has sources of the right
// types, arguments in range, and an op that exists for its type, so it can be evaluated.
std::string check_uop(Op op, DType dtype, std::span<const UOp> src, int64_t arg,
                      std::span<const int64_t> args);

}  // namespace quern::uop_text
