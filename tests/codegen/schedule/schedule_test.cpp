#include "quern/codegen/schedule/schedule.h"

#include <gtest/gtest.h>

#include "quern/codegen/ast/array.h"
#include "quern/codegen/error.h"

namespace quern {
namespace {

Ast matmul(int64_t m, int64_t n, int64_t k) {
  KernelBuilder b;
  Array x = b.input(Scalar::Float32, {m, k}).reshape({m, 1, k}).expand({m, n, k});
  Array y = b.input(Scalar::Float32, {k, n}).permute({1, 0}).reshape({1, n, k}).expand({m, n, k});
  b.output((x * y).sum(2));
  return b.build();
}

Ast add(const Shape& shape) {
  KernelBuilder b;
  Array x = b.input(Scalar::Float32, shape), y = b.input(Scalar::Float32, shape);
  b.output(x + y);
  return b.build();
}

Ast softmax(int64_t rows, int64_t columns) {
  KernelBuilder b;
  Array x = b.input(Scalar::Float32, {rows, columns});
  Array e = exp2(x - x.max(1));
  b.output(e / e.sum(1));
  return b.build();
}

std::string name_after(const Ast& ast, std::string_view opts) {
  Target target = generic_cpu_target();
  Schedule s(ast, target);
  s.apply(parse_opts(opts));
  return s.name();
}

TEST(Schedule, MergesAxesThatEveryAccessWalksThrough) {
  EXPECT_EQ(name_after(add({4, 1, 8, 2}), ""), "E_64");
  EXPECT_EQ(name_after(matmul(6, 4, 8), ""), "r_6_4_8R");
}

TEST(Schedule, KeepsAxesThatAViewTellsApart) {
  KernelBuilder b;
  Array x = b.input(Scalar::Float32, {8, 8});
  b.output(x + x.permute({1, 0}));
  EXPECT_EQ(name_after(b.build(), ""), "E_8_8");
}

TEST(Schedule, CopiesAreNamedC) {
  KernelBuilder b;
  b.output(b.input(Scalar::Int8, {16}).cast(Scalar::Int32));
  EXPECT_EQ(name_after(b.build(), ""), "C_16");
}

TEST(Schedule, ReducesOfDifferentLengthsAreAxesOfTheirOwn) {
  KernelBuilder b;
  Array x = b.input(Scalar::Float32, {16, 10, 1}), y = b.input(Scalar::Float32, {16, 20, 1});
  b.output(x.sum(1) + y.sum(1));
  EXPECT_EQ(name_after(b.build(), ""), "r_16_10R_20R");
}

TEST(Schedule, OptsSplitAxes) {
  Ast a = matmul(64, 48, 32);
  EXPECT_EQ(name_after(a, "UPCAST:1:16"), "r_64_3_32R_16U");
  EXPECT_EQ(name_after(a, "UPCAST:1:0"), "r_64_32R_48U");
  EXPECT_EQ(name_after(a, "UNROLL:0:4,UPCAST:0:2"), "r_32_48_8R_4u_2U");
  EXPECT_EQ(name_after(a, "THREAD:0:8"), "r_8t_8_48_32R");
  EXPECT_EQ(name_after(a, "THREAD:0:0,UPCAST:1:8"), "r_64t_6_32R_8U");
}

TEST(Schedule, AnAxisThatIsReducedAndUsedAgainCanBeUnrolled) {
  EXPECT_EQ(name_after(softmax(8, 64), "UNROLL:0:16"), "r_8_4R_16u");
}

struct Illegal {
  const char* opts;
  const char* reason;
};

class IllegalOpts : public testing::TestWithParam<Illegal> {};

TEST_P(IllegalOpts, AreRefusedAndChangeNothing) {
  Ast a = matmul(60, 48, 32);
  Target target = generic_cpu_target();
  Schedule s(a, target);
  std::vector<Opt> opts = parse_opts(GetParam().opts);
  Opt last = opts.back();
  opts.pop_back();
  s.apply(opts);
  std::vector<Axis> before(s.axes().begin(), s.axes().end());
  try {
    s.apply(last);
    FAIL() << "legal: " << GetParam().opts;
  } catch (const ScheduleError& e) {
    EXPECT_NE(std::string(e.what()).find(GetParam().reason), std::string::npos) << e.what();
  }
  EXPECT_TRUE(std::equal(before.begin(), before.end(), s.axes().begin(), s.axes().end()));
  EXPECT_EQ(s.applied_opts(), opts);
}

INSTANTIATE_TEST_SUITE_P(All, IllegalOpts,
                         testing::Values(Illegal{"UPCAST:0:7", "does not divide"},
                                         Illegal{"UPCAST:2:4", "no such axis"},
                                         Illegal{"UPCAST:-1:4", "no such axis"},
                                         Illegal{"UNROLL:1:4", "no such axis"},
                                         Illegal{"UPCAST:0:1", "changes nothing"},
                                         Illegal{"UPCAST:0:-4", "does not divide"},
                                         Illegal{"UPCAST:0:0,UPCAST:0:0", "the limit is 256"},
                                         Illegal{"THREAD:0:0,UPCAST:0:4", "is a Thread axis"},
                                         Illegal{"THREAD:0:0,THREAD:0:4", "is a Thread axis"}));

TEST(Schedule, SymbolicAxesCannotBeSplit) {
  KernelBuilder b;
  SInt n = b.variable("n", 1, 64);
  b.output(b.input(Scalar::Float32, {n, 4}) * 2.0);
  Ast a = b.build();
  Target target = generic_cpu_target();
  Schedule s(a, target);
  EXPECT_THROW(s.apply(Opt{OptOp::UPCAST, 0, 4}), ScheduleError);
  EXPECT_NO_THROW(s.apply(Opt{OptOp::UPCAST, 1, 4}));
}

TEST(Schedule, DefaultVectorizesTheContiguousAxis) {
  Target target = generic_cpu_target();
  EXPECT_EQ(to_string(default_opts(add({64}), target)), "UPCAST:0:64");
  std::vector<Opt> opts = default_opts(matmul(64, 64, 64), target);
  ASSERT_FALSE(opts.empty());
  EXPECT_EQ(opts[0], (Opt{OptOp::UPCAST, 1, 64}));
  opts = default_opts(softmax(4, 64), target);
  ASSERT_FALSE(opts.empty());
  EXPECT_EQ(opts[0].op, OptOp::UNROLL);
}

TEST(Schedule, RandomOptsRepeatFromTheSeed) {
  Ast a = matmul(64, 48, 32);
  Target target = generic_cpu_target();
  bool any = false;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<Opt> opts = random_opts(a, target, seed);
    EXPECT_EQ(opts, random_opts(a, target, seed));
    any |= opts.size() > 1;
    Schedule s(a, target);
    EXPECT_NO_THROW(s.apply(opts));
  }
  EXPECT_TRUE(any);
}

TEST(Opt, PrintsAndParses) {
  std::vector<Opt> opts = parse_opts("UPCAST:0:4,UNROLL:1:8,THREAD:2:0");
  EXPECT_EQ(opts.size(), 3u);
  EXPECT_EQ(to_string(opts), "UPCAST:0:4,UNROLL:1:8,THREAD:2:0");
  EXPECT_TRUE(parse_opts("").empty());
  for (const char* bad :
       {"UPCAST", "UPCAST:0", "NOPE:0:4", "UPCAST:x:4", "UPCAST:0:4x", ",", "UPCAST:0:4:5"})
    EXPECT_THROW(parse_opts(bad), ScheduleError) << bad;
}

}  // namespace
}  // namespace quern
