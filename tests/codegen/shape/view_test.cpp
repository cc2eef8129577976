#include "quern/codegen/shape/view.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <rapidcheck.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "quern/codegen/error.h"
#include "quern/codegen/shape/shapetracker.h"
#include "quern/codegen/shape/sint.h"
#include "tests/codegen/shape/tensor_model.h"

namespace quern {
namespace {

using namespace model;

constexpr int kRounds = 10;  // of each of RapidCheck's 100 cases

Shape to_shape(const Numbers& numbers) { return {numbers.begin(), numbers.end()}; }

std::vector<IndexValue> contents_of(std::vector<View> views, const Numbers& values = {}) {
  return contents(ShapeTracker(std::move(views)), values);
}

// A grouping of the factors to dimensions.
Numbers group(const Numbers& factors) {
  Numbers shape;
  bool open = false;
  for (int64_t factor : factors) {
    if (open) shape.back() *= factor;
    else shape.push_back(factor);
    open = number(0, 1) == 1;
  }
  return shape;
}

Numbers some_factors() {
  Numbers factors;
  const int64_t n = number(0, 5);
  for (int64_t i = 0; i < n; ++i) factors.push_back(number(0, 9) == 0 ? 1 : number(2, 3));
  return factors;
}

Numbers shuffled(Numbers numbers) {
  for (size_t i = numbers.size(); i-- > 1;)
    std::swap(numbers[i], numbers[static_cast<size_t>(number(0, static_cast<int64_t>(i)))]);
  return numbers;
}

Mask some_mask(const Numbers& shape) {
  Mask mask;
  for (int64_t size : shape) {
    int64_t begin = number(0, 2) == 0 ? number(0, size) : 0;
    int64_t end = number(0, 2) == 0 ? number(begin, size) : size;
    mask.push_back({begin, end});
  }
  return mask;
}

// Near enough to row-major that much of it merges.
View some_view(const Numbers& shape) {
  Shape strides = row_major_strides(to_shape(shape));
  const SInt scale = number(-2, 2);
  for (SInt& stride : strides) {
    stride *= scale;
    if (number(0, 3) == 0) stride = number(-6, 6);
  }
  Mask mask = number(0, 1) == 0 ? Mask{} : some_mask(shape);
  return View::make(to_shape(shape), strides, number(-9, 9), mask);
}

// A view whose valid indices are in 0 .. size - 1; nothing if there is none with such strides.
std::optional<View> some_outer(const Numbers& shape, int64_t size) {
  Shape strides;
  Mask mask = number(0, 1) == 0 ? Mask{} : some_mask(shape);
  int64_t low = 0;
  int64_t high = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t begin = mask.empty() ? 0 : mask[i].begin.constant();
    int64_t last = (mask.empty() ? shape[i] : mask[i].end.constant()) - 1;
    int64_t stride = number(-size, size);
    if (last > begin && std::abs(stride) * (last - begin) + high - low >= size) stride = 0;
    strides.push_back(stride);
    if (last < begin) continue;
    low += std::min(stride * begin, stride * last);
    high += std::max(stride * begin, stride * last);
  }
  if (high - low >= size) return std::nullopt;
  return View::make(to_shape(shape), strides, number(-low, size - 1 - high), mask);
}

RC_GTEST_PROP(View, MakeKeepsWhatIsValid, ()) {
  for (int round = 0; round < kRounds; ++round) {
    const Numbers shape = group(some_factors());
    Numbers strides;
    for (size_t i = 0; i < shape.size(); ++i) strides.push_back(number(-5, 5));
    const Mask mask = some_mask(shape);
    const int64_t offset = number(-5, 5);
    const std::vector<IndexValue> found =
        contents_of({View::make(to_shape(shape), to_shape(strides), offset, mask)});
    for (int64_t at = 0; at < product_of(shape); ++at) {
      const Numbers coords = unravel_number(at, shape);
      IndexValue expected{offset, true};
      for (size_t i = 0; i < shape.size(); ++i) {
        expected.index += coords[i] * strides[i];
        expected.valid = expected.valid && coords[i] >= mask[i].begin.constant() &&
                         coords[i] < mask[i].end.constant();
      }
      if (!expected.valid) expected = {};
      RC_ASSERT(found[static_cast<size_t>(at)] == expected);
    }
  }
}

RC_GTEST_PROP(View, ReshapeKeepsTheOrderOfElements, ()) {
  for (int round = 0; round < kRounds; ++round) {
    const Numbers factors = some_factors();
    const View view = some_view(group(factors));
    const Numbers shape = group(number(0, 1) == 0 ? factors : shuffled(factors));
    if (std::optional<View> result = view.reshape(to_shape(shape)))
      RC_ASSERT(contents_of({*result}) == contents_of({view}));
  }
}

RC_GTEST_PROP(View, MergeDoesWhatBothDo, ()) {
  for (int round = 0; round < kRounds; ++round) {
    const Numbers factors = some_factors();
    const View inner = some_view(group(factors));
    const Numbers shape = group(number(0, 1) == 0 ? factors : some_factors());
    std::optional<View> outer = some_outer(shape, product_of(factors));
    if (!outer) continue;
    if (std::optional<View> merged = View::merge(inner, *outer))
      RC_ASSERT(contents_of({*merged}) == contents_of({inner, *outer}));
  }
}

// Symbolic: shapes, strides, offset and mask depend on n in 1..4.
RC_GTEST_PROP(View, SymbolicReshapeAndMergeHoldForAllValues, ()) {
  const std::vector<VarBounds> vars = {{1, 4}};
  const SInt n = SInt::variable(0);
  for (int round = 0; round < kRounds; ++round) {
    std::vector<SInt> factors = {n, number(2, 3), number(2, 3)};
    std::swap(factors[0], factors[static_cast<size_t>(number(0, 2))]);
    const int64_t which = number(0, 2);
    Shape shape = which == 0   ? factors
                  : which == 1 ? Shape{factors[0] * factors[1], factors[2]}
                               : Shape{factors[0], factors[1] * factors[2]};
    Shape strides = row_major_strides(shape);
    SInt offset = 0;
    for (SInt& stride : strides) {
      if (number(0, 3) == 0) stride = number(0, 1) == 0 ? n * number(-2, 2) : SInt(number(-4, 4));
      if (number(0, 3) == 0) offset += stride * number(-1, 1) + n * number(-1, 1);
    }
    Mask mask;
    for (const SInt& size : shape) {
      SInt begin = number(0, 2) == 0 ? SInt(1) : SInt(0);
      mask.push_back({begin, number(0, 2) == 0 ? size - 1 : size});
    }
    const View inner = View::make(shape, strides, offset, mask);
    const std::vector<Shape> others = {factors,
                                       {factors[0] * factors[1], factors[2]},
                                       {factors[0], factors[1] * factors[2]},
                                       {factors[0] * factors[1] * factors[2]},
                                       {factors[2], factors[0] * factors[1]}};
    const Shape& other = others[static_cast<size_t>(number(0, 4))];
    // Backwards where `flip`; in reversed order of dimensions where `turn`.
    View outer = View::make(other);
    std::vector<int64_t> steps;
    for (size_t i = 0; i < other.size(); ++i) steps.push_back(number(0, 2) == 0 ? -1 : 1);
    outer = outer.stride(steps, vars).value();
    Mask part;
    for (const SInt& size : other)
      part.push_back({0, number(0, 2) == 0 ? size - number(0, 1) : size});
    outer = outer.shrink(part, vars).value_or(outer);

    std::optional<View> reshaped = inner.reshape(other, vars);
    std::optional<View> merged = View::merge(inner, outer, vars);
    for (int64_t value = 1; value <= 4; ++value) {
      if (reshaped) RC_ASSERT(contents_of({*reshaped}, {value}) == contents_of({inner}, {value}));
      if (merged)
        RC_ASSERT(contents_of({*merged}, {value}) == contents_of({inner, outer}, {value}));
    }
  }
}

TEST(View, CanonicalForms) {
  EXPECT_EQ(View::make({2, 1, 3}).to_string(), "V([2,1,3]; [3,0,1]; 0; -)");
  EXPECT_TRUE(View::make({2, 1, 3}, {3, 7, 1}, 0, {{0, 2}, {0, 1}, {0, 3}}).is_contiguous());
  EXPECT_FALSE(View::make({2, 3}, {1, 2}, 0).is_contiguous());
  EXPECT_EQ(View::make({4, 5}, {5, 1}, 3, {{2, 3}, {0, 5}}).to_string(),
            "V([4,5]; [0,1]; 13; [[2,3],[0,5]])");
  EXPECT_EQ(View::make({4, 5}, {5, 1}, 3, {{2, 2}, {0, 5}}).to_string(),
            "V([4,5]; [0,0]; 0; [[0,0],[0,0]])");
  EXPECT_EQ(View::make({4, 0}, {5, 1}, 3, {{1, 2}, {0, 0}}), View::make({4, 0}));
  EXPECT_TRUE(View::make({}).is_contiguous());
  EXPECT_EQ(View::make({}).size(), SInt(1));
  EXPECT_EQ(View::make({INT64_MAX, INT64_MAX, 0}).size(), SInt(0));
  EXPECT_EQ(View::make({2, 3}).hash(), View::make({2, 3}, {3, 1}, 0).hash());
  EXPECT_NE(View::make({2, 3}).hash(), View::make({3, 2}).hash());
}

TEST(View, MalformedArgumentsAreErrors) {
  const View view = View::make({2, 3});
  EXPECT_THROW(View::make({-1}), AstError);
  EXPECT_THROW(View::make({2, 3}, {1}, 0), AstError);
  EXPECT_THROW(View::make({2, 3}, {3, 1}, 0, {{0, 1}}), AstError);
  EXPECT_THROW(View::make({INT64_MAX, 2}), AstError);
  EXPECT_THROW(view.permute(std::vector<size_t>{0}), AstError);
  EXPECT_THROW(view.permute(std::vector<size_t>{0, 0}), AstError);
  EXPECT_THROW(view.permute(std::vector<size_t>{0, 2}), AstError);
  EXPECT_THROW(view.expand({2, 4}), AstError);
  EXPECT_THROW(view.expand({2, 3, 1}), AstError);
  EXPECT_THROW(view.pad(std::vector<PadDim>{{-1, 0}, {0, 0}}), AstError);
  EXPECT_THROW(view.shrink(Mask{{0, 3}, {0, 3}}), AstError);
  EXPECT_THROW(view.shrink(Mask{{2, 1}, {0, 3}}), AstError);
  EXPECT_THROW(view.stride(std::vector<int64_t>{0, 1}), AstError);
  EXPECT_THROW(view.reshape({5}), AstError);
  EXPECT_THROW(view.reshape({-2, -3}), AstError);
  EXPECT_THROW(view.reshape({SInt::variable(0), 3}), AstError);
}

// tinygrad#4332, tinygrad#2877: two valid elements that cross a row of the new shape.
TEST(View, ReshapeOfAPaddedViewWithARemainder) {
  const View padded = View::make({2, 3}, {0, 1}, 0, {{1, 2}, {0, 2}});
  EXPECT_EQ(padded.reshape({3, 2}), std::nullopt);
  EXPECT_EQ(View::merge(padded, View::make({3, 2})), std::nullopt);
  // In one row, or in whole rows, they are a box.
  EXPECT_EQ(padded.reshape({6}), View::make({6}, {1}, -3, {{3, 5}}));
  EXPECT_EQ(padded.reshape({2, 1, 3}),
            View::make({2, 1, 3}, {0, 0, 1}, 0, {{1, 2}, {0, 1}, {0, 2}}));
  EXPECT_EQ(View::make({6}, {1}, -2, {{2, 6}}).reshape({3, 2}),
            View::make({3, 2}, {2, 1}, -2, {{1, 3}, {0, 2}}));

  const View nothing = View::make({4, 5}, {5, 1}, 0, {{0, 0}, {0, 0}});
  std::optional<View> flat = nothing.reshape({20});
  ASSERT_TRUE(flat);
  EXPECT_TRUE(flat->is_all_invalid());
  // A scalar has no mask that could leave its position out.
  EXPECT_EQ(View::make({1}, {0}, 0, {{0, 0}}).reshape({}), std::nullopt);
}

// tinygrad#11088, tinygrad#10730: the mask leaves out odd columns, the offset picks a row.
TEST(View, MergeWithASymbolicOffset) {
  const std::vector<VarBounds> vars = {{1, 99}};
  const SInt s = SInt::variable(0);
  const View pairs = View::make({100, 32, 2}, {32, 1, 0}, 0, {{0, 100}, {0, 32}, {0, 1}});
  const View row = View::make({8, 32}, {0, 2}, s * 64);
  std::optional<View> merged = View::merge(pairs, row, vars);
  EXPECT_EQ(merged, View::make({8, 32}, {0, 1}, s * 32));
  for (int64_t value : {1, 7, 99})
    EXPECT_EQ(contents_of({*merged}, {value}), contents_of({pairs, row}, {value}));
  // Of the odd columns nothing is valid.
  std::optional<View> odd = View::merge(pairs, View::make({8, 32}, {0, 2}, s * 64 + 1), vars);
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->is_all_invalid());
}

TEST(View, MergeRefusesWhatTheVariablesDecide) {
  const std::vector<VarBounds> vars = {{0, 3}};
  const SInt n = SInt::variable(0);
  // Whether row n is masked off depends on n alone.
  const View rows = View::make({4, 5}, {5, 1}, 0, {{0, 2}, {0, 5}});
  EXPECT_EQ(View::merge(rows, View::make({5}, {1}, n * 5), vars), std::nullopt);
  EXPECT_TRUE(View::merge(rows, View::make({5}, {1}, n * 5), std::vector<VarBounds>{{0, 1}}));
}

TEST(View, NegativeStrides) {
  // The window of a transposed convolution: turned on both axes.
  const View window = View::make({2, 3, 3}).stride(std::vector<int64_t>{1, -1, -1}).value();
  EXPECT_EQ(window, View::make({2, 3, 3}, {9, -3, -1}, 8));
  EXPECT_EQ(window.reshape({2, 9}), View::make({2, 9}, {9, -1}, 8));
  EXPECT_EQ(window.reshape({18}), std::nullopt);
  const View backwards = View::make({8}, {-1}, 7);
  EXPECT_EQ(backwards.reshape({2, 4}), View::make({2, 4}, {-4, -1}, 7));
  EXPECT_EQ(View::merge(backwards, backwards), View::make({8}));
}

TEST(View, ASymbolicMaskOfOnePosition) {
  const std::vector<VarBounds> vars = {{0, 1}};
  const SInt n = SInt::variable(0);
  const View maybe = View::make({1, 2}, {0, 1}, 0, {{0, n}, {0, 2}});
  // The mask of a dimension that is dropped would be lost.
  EXPECT_EQ(maybe.reshape({2}, vars), std::nullopt);
  const View repeated = maybe.expand({3, 2});
  for (const IndexValue& at : contents_of({repeated}, {0})) EXPECT_FALSE(at.valid);
  EXPECT_EQ(contents_of({repeated}, {1}), contents_of({View::make({3, 2}, {0, 1}, 0)}));
}

// A recorded kernel's: the last value of n lets the mask reach one row beyond the dimension.
TEST(View, AMaskMayReachBeyondItsDimension) {
  const std::vector<VarBounds> vars = {{1, 4}};
  const SInt n = SInt::variable(0);
  const View view = View::make({3, 4}, {4, 1}, 0, {{0, 3}, {0, n + 1}});
  EXPECT_EQ(view.pad(std::vector<PadDim>{{0, 0}, {0, 1}}, vars), std::nullopt);
  std::optional<View> padded = view.pad(std::vector<PadDim>{{1, 0}, {2, 0}}, vars);
  ASSERT_TRUE(padded);
  const View row = View::make({3, 4}, {4, 1}, 0, {{1, 2}, {0, n + 1}});
  EXPECT_EQ(row.reshape({12}, vars), std::nullopt);
  for (int64_t value = 1; value <= 4; ++value) {
    Mask numbers = {{0, 3}, {0, std::min<int64_t>(value + 1, 4)}};
    EXPECT_EQ(contents_of({view}, {value}), contents_of({View::make({3, 4}, {4, 1}, 0, numbers)}));
  }
}

}  // namespace
}  // namespace quern
