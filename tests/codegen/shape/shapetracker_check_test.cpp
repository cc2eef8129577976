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
#include "quern/codegen/shape/shapetracker.h"
#include "quern/codegen/shape/sint.h"
#include "quern/codegen/shape/view.h"
#include "tests/codegen/shape/tensor_model.h"

namespace quern {
namespace {

using namespace model;

bool passes(const ShapeTracker& tracker, std::optional<int64_t> size,
            const std::vector<VarBounds>& vars = {}) {
  try {
    tracker.check(size, vars);
    return true;
  } catch (const AstError&) {
    return false;
  }
}

std::string error_of(const ShapeTracker& tracker, std::optional<int64_t> size,
                     const std::vector<VarBounds>& vars = {}) {
  try {
    tracker.check(size, vars);
    return "no error";
  } catch (const AstError& error) {
    return error.what();
  }
}

RC_GTEST_PROP(ShapeTrackerCheck, PassesWithJustEnoughElements, ()) {
  for (int round = 0; round < 5; ++round) {
    const Case tested = some_number_case();
    const IndexRange range = range_of(model_of(tested, {}));
    RC_ASSERT(tested.tracker.index_range() == range);
    RC_ASSERT(tested.tracker.buffer_size() == range.max + 1);
    RC_ASSERT(passes(tested.tracker, std::nullopt));
    RC_ASSERT(passes(tested.tracker, range.max + 1));
    if (!range.empty) RC_ASSERT(!passes(tested.tracker, range.max));
  }
}

// Views that no movement op makes, with one variable, 0..3.
View some_view(const std::vector<SInt>& sizes, const std::vector<SInt>& strides) {
  Shape shape;
  Shape steps;
  Mask mask;
  const int64_t rank = number(0, 3);
  for (int64_t i = 0; i < rank; ++i) {
    shape.push_back(sizes[pick(sizes.size())]);
    steps.push_back(strides[pick(strides.size())]);
    mask.push_back({number(0, 3) == 0 ? sizes[pick(sizes.size())] : SInt(0),
                    number(0, 3) == 0 ? sizes[pick(sizes.size())] : shape.back()});
  }
  return View::make(shape, steps, number(0, 2) == 0 ? strides[pick(strides.size())] : SInt(0),
                    mask);
}

// By trying everything: no valid position's index leaves the view before, or the buffer.
bool is_inside(const std::vector<View>& views, int64_t size, const Numbers& values) {
  for (size_t k = views.size(); k-- > 0;) {
    const ShapeTracker part({views.begin() + static_cast<ptrdiff_t>(k), views.end()});
    const int64_t limit = k == 0 ? size : views[k - 1].size().eval(values);
    for (IndexValue at : contents(part, values))
      if (at.valid && (at.index < 0 || at.index >= limit)) return false;
  }
  return true;
}

bool has_sound_masks(const View& view, const std::vector<VarBounds>& vars) {
  for (size_t i = 0; i < view.mask().size(); ++i)
    if ((view.shape()[i] - view.mask()[i].end).bounds(vars).max < 0) return false;
  return true;
}

void check_chain(const std::vector<View>& views, const std::vector<VarBounds>& vars) {
  for (const View& view : views)
    if (!has_sound_masks(view, vars)) return;
  const ShapeTracker tracker(views);
  const int64_t size = number(1, 12);
  bool good = true;
  for (int64_t n = vars[0].min; n <= vars[0].max; ++n) good = good && is_inside(views, size, {n});
  RC_LOG(error_of(tracker, size, vars));
  RC_ASSERT(passes(tracker, size, vars) == good);
  if (!good) return;
  const ShapeTracker simple = tracker.simplify(vars);
  RC_LOG(simple.to_string());
  for (int64_t n = vars[0].min; n <= vars[0].max; ++n) {
    const Model model = Model::of(tracker, {n});
    check_same(simple, model, {n});
    check_strides(tracker, model, {n}, vars);
    const IndexRange range = range_of(model);
    const IndexRange found = tracker.index_range(vars);
    if (!range.empty) RC_ASSERT(found.min <= range.min && found.max >= range.max);
  }
}

// What can leave its buffer or view is found; everything else passes, and stays right when
// simplified.
RC_GTEST_PROP(ShapeTrackerCheck, OfArbitraryChains, ()) {
  for (int round = 0; round < 10; ++round) {
    std::vector<View> views;
    const int64_t count = number(1, 3);
    for (int64_t v = 0; v < count; ++v)
      views.push_back(some_view({1, 2, 3, 4}, {0, 1, 1, 2, 3, -1}));
    check_chain(views, {{0, 0}});
  }
}

RC_GTEST_PROP(ShapeTrackerCheck, OfArbitrarySymbolicChains, ()) {
  const SInt n = SInt::variable(0);
  for (int round = 0; round < 5; ++round) {
    std::vector<View> views;
    const int64_t count = number(1, 2);
    for (int64_t v = 0; v < count; ++v)
      views.push_back(some_view({1, 2, 3, n, n + 1}, {0, 1, n, n - 1, -1, n * 2, SInt(1) - n}));
    check_chain(views, {{0, 3}});
  }
}

TEST(ShapeTrackerCheck, UsesHowSymbolsCancel) {
  const std::vector<VarBounds> vars = {{1, 128}, {1, 10}};
  const SInt pos = SInt::variable(0);
  const SInt j = SInt::variable(1);
  EXPECT_TRUE(passes(
      ShapeTracker({View::make({3, pos + 1}, {0, 1}, -pos, {{0, 3}, {pos, pos + 1}})}), 1, vars));
  EXPECT_TRUE(
      passes(ShapeTracker({View::make({pos + j, 3}, {3, 1}, pos * -3, {{pos, pos + j}, {0, 3}})}),
             30, vars));
  EXPECT_FALSE(
      passes(ShapeTracker({View::make({pos + j, 3}, {3, 1}, pos * -3, {{pos, pos + j}, {0, 3}})}),
             29, vars));
  EXPECT_TRUE(passes(ShapeTracker({View::make({j, j}, {-j, -1}, j * j - 1)}), 100, vars));
  EXPECT_FALSE(passes(ShapeTracker({View::make({j, j}, {-j, -1}, j * j - 2)}), 100, vars));
  // The view before is as large as the variable says.
  EXPECT_TRUE(
      passes(ShapeTracker({View::make({pos + 1}, {2}, 0), View::make({pos}, {1}, 1)}), 257, vars));
  EXPECT_FALSE(
      passes(ShapeTracker({View::make({pos + 1}, {2}, 0), View::make({pos}, {1}, 2)}), 257, vars));
}

TEST(ShapeTrackerCheck, LeavesOutValuesWithoutPositions) {
  // Nothing is valid where n is below 3, so nothing is wrong with an offset of n - 3.
  const std::vector<VarBounds> vars = {{0, 9}};
  const SInt n = SInt::variable(0);
  const ShapeTracker tracker({View::make({10, 4}, {1, 0}, n - 3, {{0, n - 2}, {0, 4}})});
  EXPECT_TRUE(passes(tracker, 13, vars));
  EXPECT_FALSE(passes(tracker, 12, vars));
}

TEST(ShapeTrackerCheck, SaysWhatIsWrongWhere) {
  const std::vector<VarBounds> vars = {{1, 10}};
  const SInt n = SInt::variable(0);
  EXPECT_EQ(error_of(ShapeTracker({View::make({4, 5}, {5, 1}, 2)}), 20),
            "view 0 of 1, V([4,5]; [5,1]; 2; -): valid positions index elements 2 to 21, but the "
            "buffer has 20");
  EXPECT_EQ(error_of(ShapeTracker({View::make({4}, {1}, -1)}), 20),
            "view 0 of 1, V([4]; [1]; -1; -): valid positions index elements -1 to 2, but the "
            "buffer has 20");
  EXPECT_EQ(
      error_of(ShapeTracker({View::make({3, 3}, {1, 3}, 0), View::make({4, 3})}), 9),
      "view 1 of 2, V([4,3]; [3,1]; 0; -): valid positions index elements 0 to 11, but the view "
      "before has 9");
  EXPECT_EQ(error_of(ShapeTracker({View::make({n - 2}, {1}, 0)}), 20, vars),
            "view 0 of 1, V([(var0+-2)]; [1]; 0; -): dimension 0 can be -1, expected 0 or more");
  EXPECT_EQ(error_of(ShapeTracker({View::make({4}, {1}, 0, {{0, 5}})}), 20),
            "view 0 of 1, V([4]; [1]; 0; [[0,5]]): the mask of dimension 0 lies outside of the "
            "dimension");
  EXPECT_FALSE(passes(ShapeTracker({View::make({4}, {1}, 0, {{-1, 4}})}), 20));
}

TEST(ShapeTrackerCheck, FindsOverflow) {
  const std::vector<VarBounds> vars = {{1, INT32_MAX}};
  const SInt n = SInt::variable(0);
  EXPECT_FALSE(passes(ShapeTracker({View::make({4}, {INT64_MAX / 2}, 0)}), std::nullopt));
  EXPECT_FALSE(passes(ShapeTracker({View::make({4}, {1}, INT64_MAX - 1)}), std::nullopt));
  EXPECT_FALSE(passes(ShapeTracker({View::make({4}, {-1}, INT64_MIN + 1)}), std::nullopt));
  // A mask does not help: lowered code computes the index all the same.
  EXPECT_FALSE(passes(ShapeTracker({View::make({8}, {INT64_MAX / 4}, 0, {{0, 2}})}), INT64_MAX));
  EXPECT_FALSE(passes(ShapeTracker({View::make({n, n, n}, {0, 0, 0}, 0)}), 1, vars));
  EXPECT_FALSE(passes(ShapeTracker({View::make({n}, {SInt(INT64_MAX)}, 0)}), std::nullopt, vars));
  EXPECT_FALSE(passes(ShapeTracker({View::make({SInt::variable(5)}, {0}, 0)}), 1, vars));
  EXPECT_TRUE(passes(ShapeTracker({View::make({n, n}, {0, 1}, 0)}), INT32_MAX, vars));
  EXPECT_TRUE(passes(ShapeTracker({View::make({INT64_MAX, 0, INT64_MAX})}), 0));
}

}  // namespace
}  // namespace quern
