#pragma once

#include "quern/codegen/uop/uop.h"

namespace quern {

// Replaces the Index type by int32 where a value and all it is computed from fit, else by int64.
// Only addresses beyond 2^31 elements pay for wide arithmetic.
UOp legalize_index(Graph& graph, UOp sink);

}  // namespace quern
