#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "quern/codegen/program.h"
#include "quern/runtime/kernel.h"

namespace quern {

// Throws ArgumentError, naming kernel, argument, and what was expected and found, unless the
// buffers fit the program's parameters and no output shares memory with another argument.
void check_buffers(const Program& program, const Device& device, std::span<const Buffer> buffers);

// The variables' values in the order of program.vars. Throws ArgumentError unless each is given
// once and lies in its range.
std::vector<int64_t> order_vars(const Program& program, std::span<const VarValue> vars);

}  // namespace quern
