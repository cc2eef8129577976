#pragma once

#include <cstdint>
#include <vector>

#include "quern/codegen/ast/ast.h"
#include "tests/kernel_check.h"

namespace quern::test {

// A kernel made up at random, and data for all of its buffers.
struct RandomKernel {
  Ast ast;
  std::vector<Values> buffers;
  std::vector<int64_t> vars;
  std::vector<std::string> var_names;

  std::vector<VarValue> var_values() const;
};

// The same for the same seed. Inputs are moved (permuted, padded, shrunk, flipped, expanded,
// reshaped), combined by ops, cast, reduced, used again after reduces, and stored to one output or
// several, some in place; one in four has a symbolic dimension. Float values stay exact, so that
// all orders of evaluation give the same bits.
RandomKernel random_kernel(uint64_t seed);

}  // namespace quern::test
