// Random kernels give on every device and with every schedule what their AST says.

#include "tests/random_ast.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>

#include "quern/codegen/ast/text.h"
#include "quern/codegen/uop/eval.h"
#include "tests/ast_eval.h"

namespace quern {
namespace {

using namespace test;

class RandomAst : public testing::TestWithParam<int> {};

// QUERN_RANDOM_KERNELS=N looks further.
int kernels_a_test() {
  const char* wanted = std::getenv("QUERN_RANDOM_KERNELS");
  return wanted ? std::max(1, std::atoi(wanted)) : 100;
}

TEST_P(RandomAst, RunsAsEvaluated) {
  for (int i = 0, n = kernels_a_test(); i < n; ++i) {
    auto seed = static_cast<uint64_t>(GetParam() * n + i);
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomKernel kernel = random_kernel(seed);
    SCOPED_TRACE(print_ast(kernel.ast));
    std::vector<Values> expected = evaluate(kernel.ast, kernel.buffers, kernel.vars);
    expected.resize(kernel.ast.outputs().size());
    // Exactly, but for the sign of zero, which MAX may choose.
    expect_near(kernel.ast, kernel.buffers, expected, 0, {.vars = kernel.var_values(), .walks = 2});
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomAst, testing::Range(0, 8));

}  // namespace
}  // namespace quern
