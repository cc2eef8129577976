#include "quern/codegen/shape/shapetracker.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <rapidcheck.h>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "quern/codegen/error.h"
#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/view.h"
#include "tests/codegen/shape/tensor_model.h"

namespace quern {
namespace {

using namespace model;

RC_GTEST_PROP(ShapeTracker, MovementOpsDoWhatTheModelDoes, ()) {
  for (int round = 0; round < 5; ++round) {
    const Case tested = some_number_case();
    const Model model = model_of(tested, {});
    check_same(tested.tracker, model, {});
    const ShapeTracker simple = tested.tracker.simplify();
    RC_ASSERT(simple.views().size() <= tested.tracker.views().size());
    check_same(simple, model, {});
    RC_ASSERT(simple.simplify() == simple);
  }
}

RC_GTEST_PROP(ShapeTracker, StridesAndMasksOfAxesHold, ()) {
  for (int round = 0; round < 3; ++round) {
    const Case tested = some_number_case();
    const Model model = model_of(tested, {});
    check_strides(tested.tracker, model, {}, {});
    check_strides(tested.tracker.simplify(), model, {}, {});
  }
}

RC_GTEST_PROP(ShapeTracker, SymbolicMovementOpsHoldForAllValues, ()) {
  const std::vector<VarBounds> vars = {{1, 3}, {0, 2}};
  const SInt n = SInt::variable(0);
  const SInt m = SInt::variable(1);
  const std::vector<SInt> sizes = {n, m + 1, n + 2, n * 2, m, 1, 2, 3, 4};
  const Case tested = some_case([&] { return sizes[pick(sizes.size())]; }, vars);
  RC_LOG(tested.tracker.to_string());
  const ShapeTracker simple = tested.tracker.simplify(vars);
  int64_t size = 0;
  for (int64_t i = vars[0].min; i <= vars[0].max; ++i) {
    for (int64_t j = vars[1].min; j <= vars[1].max; ++j) {
      const Numbers values = {i, j};
      const Model model = model_of(tested, values);
      check_same(tested.tracker, model, values);
      check_same(simple, model, values);
      check_strides(tested.tracker, model, values, vars);
      const IndexRange range = range_of(model);
      if (!range.empty) size = std::max(size, range.max + 1);
    }
  }
  RC_ASSERT(tested.tracker.buffer_size(vars) >= size);
  tested.tracker.check(size, vars);
  if (size > 0) RC_ASSERT_THROWS_AS(tested.tracker.check(size - 1, vars), AstError);
}

TEST(ShapeTracker, AReshapeThatIsNoViewAddsOne) {
  const ShapeTracker turned = ShapeTracker::make({2, 3}).permute(std::vector<size_t>{1, 0});
  const ShapeTracker flat = turned.reshape({6});
  EXPECT_EQ(flat.to_string(), "V([3,2]; [1,3]; 0; -), V([6]; [1]; 0; -)");
  EXPECT_EQ(flat.reshape({3, 2}).simplify(), turned);
  EXPECT_EQ(flat.reshape({3, 2}).simplify().hash(), turned.hash());
  EXPECT_FALSE(flat.is_contiguous());
  EXPECT_THROW(ShapeTracker(std::vector<View>{}), AstError);
}

// tinygrad#4332 and the all-invalid reshape, element by element.
TEST(ShapeTracker, PaddedAndReshaped) {
  const ShapeTracker chain({View::make({2, 3}, {0, 1}, 0, {{1, 2}, {0, 2}}), View::make({3, 2})});
  const std::vector<IndexValue> expected = {{}, {}, {}, {0, true}, {1, true}, {}};
  for (const ShapeTracker& tracker : {chain, chain.simplify()})
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_EQ(tracker.expr_index(Numbers{i / 2, i % 2}), expected[static_cast<size_t>(i)]);
  EXPECT_EQ(chain.buffer_size(), 2);
  EXPECT_NO_THROW(chain.check(2));
  EXPECT_THROW(chain.check(1), AstError);

  const ShapeTracker nothing({View::make({4, 5}, {5, 1}, 0, {{0, 0}, {0, 0}}), View::make({20})});
  EXPECT_NO_THROW(nothing.check(0));
  EXPECT_EQ(nothing.buffer_size(), 0);
  EXPECT_EQ(nothing.simplify().views().size(), 1u);
  EXPECT_TRUE(nothing.simplify().views()[0].is_all_invalid());
}

// tinygrad#11088: rows of a padded buffer, from a symbolic one on.
TEST(ShapeTracker, ASymbolicRowOfAPaddedBuffer) {
  const std::vector<VarBounds> vars = {{1, 99}};
  const ShapeTracker chain({View::make({100, 32, 2}, {32, 1, 0}, 0, {{0, 100}, {0, 32}, {0, 1}}),
                            View::make({8, 32}, {0, 2}, SInt::variable(0) * 64)});
  EXPECT_NO_THROW(chain.check(3200, vars));
  EXPECT_THROW(chain.check(3199, vars), AstError);
  EXPECT_EQ(chain.index_range(vars), (IndexRange{32, 3199, false}));
  const ShapeTracker simple = chain.simplify(vars);
  EXPECT_EQ(simple.views().size(), 1u);
  for (int64_t s : {1, 7, 99})
    for (int64_t r = 0; r < 8; ++r)
      for (int64_t d = 0; d < 32; ++d)
        EXPECT_EQ(simple.expr_index(Numbers{r, d}, Numbers{s}), (IndexValue{s * 32 + d, true}));
  const auto strides = chain.real_strides(false, vars);
  EXPECT_EQ(strides[0], SInt(0));
  EXPECT_EQ(strides[1], SInt(1));
  EXPECT_FALSE(chain.axis_is_masked(1, vars));
}

// tg:test_failure_19: no address before the buffer.
TEST(ShapeTracker, FlippedWindow) {
  const ShapeTracker window = ShapeTracker::make({2, 3, 3}).stride(std::vector<int64_t>{1, -1, -1});
  EXPECT_EQ(window, ShapeTracker({View::make({2, 3, 3}, {9, -3, -1}, 8)}));
  EXPECT_EQ(window.index_range(), (IndexRange{0, 17, false}));
  EXPECT_EQ(window.real_strides()[1], SInt(-3));
  EXPECT_THROW(ShapeTracker({View::make({2, 3, 3}, {9, -3, -1}, 7)}).check(18), AstError);
}

TEST(ShapeTracker, RealStridesThroughTwoViews) {
  // A transposed tensor made flat: no stride; cut into the same dimensions again: its strides.
  const ShapeTracker flat =
      ShapeTracker::make({2, 3}).permute(std::vector<size_t>{1, 0}).reshape({6});
  EXPECT_EQ(flat.real_strides()[0], std::nullopt);
  const ShapeTracker rows({flat.views()[0], View::make({2, 4}, {0, 1}, 1)});
  EXPECT_EQ(rows.real_strides()[0], SInt(0));
  EXPECT_EQ(rows.real_strides()[1], std::nullopt);
  const ShapeTracker pairs({flat.views()[0], View::make({3, 2, 5}, {2, 1, 0}, 0)});
  EXPECT_EQ(pairs.real_strides()[0], SInt(1));
  EXPECT_EQ(pairs.real_strides()[1], SInt(3));
  EXPECT_EQ(pairs.real_strides()[2], SInt(0));
}

TEST(ShapeTracker, RealStridesThroughThreeViews) {
  const View turned = View::make({3, 2}, {1, 3}, 0);
  const View flat = View::make({6});
  // Scaling does not make it linear again; nothing but a stride of 0 does.
  EXPECT_EQ(ShapeTracker({View::make({6}, {2}, 0), turned, flat}).real_strides()[0], std::nullopt);
  EXPECT_EQ(ShapeTracker({View::make({6}, {0}, 0), turned, flat}).real_strides()[0], SInt(0));
  // The first view mixes what is not linear with what was.
  const std::vector<View> columns = {View::make({3, 2, 5}, {5, 15, 1}, 0), View::make({6, 5})};
  EXPECT_EQ(ShapeTracker(columns).real_strides()[1], SInt(1));
  const ShapeTracker mixed({View::make({2, 15}, {1, 2}, 0), columns[0], columns[1]});
  EXPECT_EQ(mixed.real_strides()[0], std::nullopt);
  EXPECT_EQ(mixed.real_strides()[1], std::nullopt);
}

TEST(ShapeTracker, RealStridesOfAMaskedAxis) {
  const ShapeTracker padded = ShapeTracker::make({4, 5}).pad(std::vector<PadDim>{{0, 0}, {1, 2}});
  EXPECT_EQ(padded.real_strides()[0], SInt(5));
  EXPECT_EQ(padded.real_strides()[1], std::nullopt);
  EXPECT_EQ(padded.real_strides(true)[1], SInt(1));
  EXPECT_FALSE(padded.axis_is_masked(0));
  EXPECT_TRUE(padded.axis_is_masked(1));
}

TEST(ShapeTracker, EmptyShapesTouchNothing) {
  const ShapeTracker empty = ShapeTracker::make({3, 0, 5});
  EXPECT_EQ(empty.buffer_size(), 0);
  EXPECT_NO_THROW(empty.check(0));
  const ShapeTracker padded = empty.pad(std::vector<PadDim>{{0, 0}, {1, 1}, {0, 0}});
  EXPECT_EQ(padded.size(), SInt(30));
  EXPECT_NO_THROW(padded.check(0));
  EXPECT_NO_THROW(empty.reshape({0, 7}).permute(std::vector<size_t>{1, 0}).check(0));
}

TEST(ShapeTracker, ExprIndexIsTotal) {
  const ShapeTracker strange({View::make({0, 4}), View::make({3}, {1}, INT64_MIN)});
  EXPECT_EQ(strange.expr_index(Numbers{2}), IndexValue{});
  const ShapeTracker wraps({View::make({3}, {INT64_MAX}, INT64_MAX)});
  EXPECT_TRUE(wraps.expr_index(Numbers{2}).valid);
  EXPECT_THROW(wraps.expr_index(Numbers{1, 2}), AstError);
}

}  // namespace
}  // namespace quern
