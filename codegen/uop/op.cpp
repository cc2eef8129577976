#include "quern/codegen/uop/op.h"

namespace quern {

std::optional<Op> parse_op(std::string_view text) {
  for (int i = 0; i < kOpCount; ++i)
    if (name(static_cast<Op>(i)) == text) return static_cast<Op>(i);
  return std::nullopt;
}

}  // namespace quern
