// Reduces: identities, accumulators, several in one kernel, and folded sums.

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "quern/codegen/ast/array.h"
#include "quern/codegen/error.h"
#include "quern/codegen/schedule/schedule.h"
#include "tests/kernel_check.h"

namespace quern {
namespace {

using namespace test;

TEST(Reduces, MaxStartsBelowEverything) {
  auto check = [](const Values& lowest) {
    KernelBuilder k;
    k.output(k.input(lowest.dtype, {3, static_cast<int64_t>(lowest.size()) / 3}).max(1));
    Values out{lowest.dtype, std::vector<int64_t>(3, lowest.lanes[0])};
    expect_outputs(k.build(), {lowest}, {out});
  };
  for (int64_t length : {1, 13, 64}) {
    size_t n = static_cast<size_t>(3 * length);
    check(repeated(Scalar::Float32, -1.0, n));
    check(repeated(Scalar::Float32, -3.4028235e38, n));
    check(repeated(Scalar::Float32, -HUGE_VAL, n));
    check(repeated(Scalar::Float16, -65504, n));
    check(ints(Scalar::Int32, std::vector<int64_t>(n, INT32_MIN)));
    check(ints(Scalar::Int64, std::vector<int64_t>(n, INT64_MIN)));
    check(zeros(Scalar::UInt8, n));
    check(zeros(Scalar::Bool, n));
  }
}

TEST(Reduces, HalfSumsDoNotStall) {
  auto check = [](const Values& in, double sum, double tolerance) {
    KernelBuilder k;
    k.output(k.input(in.dtype, {static_cast<int64_t>(in.size())}).sum(0));
    expect_near(k.build(), {in}, {reals(in.dtype, {sum})}, tolerance);
  };
  check(repeated(Scalar::Float16, 1, 4096), 4096, 0);
  check(repeated(Scalar::BFloat16, 1, 512), 512, 0);
  check(repeated(Scalar::Float16, 0.001, 10000), 10.0078125, 0.02);
}

TEST(Reduces, MeanOfLargeHalves) {
  KernelBuilder k;
  Array sum = k.input(Scalar::Float16, {3}).cast(Scalar::Float32).sum(0);
  k.output((sum / 3.0).cast(Scalar::Float16));
  expect_outputs(k.build(), {repeated(Scalar::Float16, 60000, 3)},
                 {reals(Scalar::Float16, {60000})});
}

TEST(Reduces, OfDifferentLengthsInOneKernel) {
  KernelBuilder k;
  Array a = k.input(Scalar::Float32, {16, 10, 1}), b = k.input(Scalar::Float32, {16, 1, 20});
  k.output(a.sum(1) + b.sum(2));
  Values x = zeros(Scalar::Float32, 160), y = zeros(Scalar::Float32, 320),
         out = zeros(Scalar::Float32, 16);
  std::vector<double> p, q, r(16);
  for (int i = 0; i < 160; ++i) r[static_cast<size_t>(i / 10)] += p.emplace_back(i % 7 - 3);
  for (int i = 0; i < 320; ++i) r[static_cast<size_t>(i / 20)] += q.emplace_back(i % 11);
  expect_outputs(k.build(), {reals(Scalar::Float32, p), reals(Scalar::Float32, q)},
                 {reals(Scalar::Float32, r)});
}

TEST(Reduces, SumAndMaxOfOneRow) {
  KernelBuilder k;
  Array x = k.input(Scalar::Int32, {5, 12});
  k.output(x.sum(1));
  k.output(x.max(1));
  std::vector<int64_t> in, sum(5, 0), max(5, INT64_MIN);
  for (int64_t i = 0; i < 60; ++i) {
    in.push_back(i * 37 % 23 - 11);
    size_t row = static_cast<size_t>(i / 12);
    sum[row] += in.back();
    max[row] = std::max(max[row], in.back());
  }
  expect_outputs(k.build(), {ints(Scalar::Int32, in)},
                 {ints(Scalar::Int32, sum), ints(Scalar::Int32, max)});
}

std::vector<double> wave(size_t n) {
  std::vector<double> x;
  for (size_t i = 0; i < n; ++i) x.push_back(std::sin(static_cast<double>(i) * 1.7) * 3);
  return x;
}

class Softmax : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(Softmax, InOneKernel) {
  auto [rows, columns] = GetParam();
  std::vector<double> x = wave(static_cast<size_t>(rows * columns)), y(x.size());
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    size_t n = static_cast<size_t>(columns);
    double max = *std::max_element(&x[r * n], &x[r * n] + n), sum = 0;
    for (size_t i = r * n; i < (r + 1) * n; ++i) sum += y[i] = std::exp(x[i] - max);
    for (size_t i = r * n; i < (r + 1) * n; ++i) y[i] /= sum;
  }
  KernelBuilder k;
  Array t = k.input(Scalar::Float32, {rows, columns});
  Array e = exp2((t - t.max(1)) * 1.4426950408889634);
  k.output(e / e.sum(1));
  expect_near(k.build(), {reals(Scalar::Float32, x)}, {reals(Scalar::Float32, y)}, 1e-6,
              {.walks = 12});
}

INSTANTIATE_TEST_SUITE_P(Shapes, Softmax,
                         testing::Values(std::pair(1, 1), std::pair(4, 8), std::pair(3, 7),
                                         std::pair(50, 50), std::pair(2, 1024), std::pair(17, 32)));

class LayerNorm : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

TEST_P(LayerNorm, InOneKernel) {
  auto [rows, columns] = GetParam();
  double n = static_cast<double>(columns);
  std::vector<double> x = wave(static_cast<size_t>(rows * columns)), y(x.size());
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    size_t begin = r * static_cast<size_t>(columns), end = begin + static_cast<size_t>(columns);
    double mean = std::accumulate(&x[begin], &x[0] + end, 0.0) / n, variance = 0;
    for (size_t i = begin; i < end; ++i) variance += (x[i] - mean) * (x[i] - mean) / n;
    for (size_t i = begin; i < end; ++i) y[i] = (x[i] - mean) / std::sqrt(variance + 1e-5) * 2 + 1;
  }
  KernelBuilder k;
  Array t = k.input(Scalar::Float32, {rows, columns});
  Array gain = k.input(Scalar::Float32, {1, columns}),
        bias = k.input(Scalar::Float32, {1, columns});
  Array centered = t - t.sum(1) / n;
  Array variance = (centered * centered).sum(1) / n;
  k.output(centered / sqrt(variance + 1e-5) * gain + bias);
  size_t width = static_cast<size_t>(columns);
  expect_near(k.build(),
              {reals(Scalar::Float32, x), repeated(Scalar::Float32, 2, width),
               repeated(Scalar::Float32, 1, width)},
              {reals(Scalar::Float32, y)}, 2e-5, {.walks = 12});
}

INSTANTIATE_TEST_SUITE_P(Shapes, LayerNorm,
                         testing::Values(std::pair(4, 8), std::pair(3, 7), std::pair(50, 50),
                                         std::pair(2, 1024)));

TEST(Reduces, SoftmaxToHalfSumsToOne) {
  KernelBuilder k;
  Array t = k.input(Scalar::Float32, {50, 50});
  Array e = exp2(t - t.max(1));
  k.output((e / e.sum(1)).cast(Scalar::Float16));
  for_all_schedules(k.build(), {reals(Scalar::Float32, wave(2500))}, [](const Launched& run) {
    for (size_t r = 0; r < 50; ++r) {
      double sum = 0;
      for (size_t c = 0; c < 50; ++c) sum += run.buffers[0].real(r * 50 + c);
      EXPECT_NEAR(sum, 1, 3e-3);
    }
  });
}

// 0, 1, .. n-1 by counting a triangular mask: the view walks through an [n+1, 2n-1] box of which
// the right columns are ones.
Array count(KernelBuilder& k, int64_t n, double one) {
  Array ones = k.constant(Scalar::Int32, one, {n + 1, n}).pad({{0, 0}, {n - 1, 0}});
  return ones.reshape({(n + 1) * (2 * n - 1)})
      .shrink({{0, n * 2 * n}})
      .reshape({n, 2 * n})
      .shrink({{0, n}, {0, n}});
}

TEST(Reduces, CountingATriangularMask) {
  for (int64_t n : {2, 6, 10, 37, 128, 1024}) {
    KernelBuilder k;
    k.output(count(k, n, 1).sum(1) - 1.0);
    std::vector<int64_t> expected(static_cast<size_t>(n));
    std::iota(expected.begin(), expected.end(), 0);
    expect_outputs(k.build(), {}, {ints(Scalar::Int32, expected)}, {.walks = n > 100 ? 2 : 8});
  }
  KernelBuilder k;
  k.output(count(k, 10, -1).sum(1) + 10.0);
  expect_outputs(k.build(), {}, {ints(Scalar::Int32, {9, 8, 7, 6, 5, 4, 3, 2, 1, 0})});
}

// A gather as compare-and-sum may become a load, but of what is inside the buffer only.
TEST(Reduces, GatherStaysInBounds) {
  for (Scalar index : {Scalar::Int32, Scalar::Int64}) {
    KernelBuilder k;
    Array idx = k.input(index, {7, 1}), data = k.input(Scalar::Float32, {1, 256});
    Array j = (count(k, 256, 1).sum(1) - 1.0).permute({1, 0});
    k.output(where(equal(idx, j.cast(index).expand({7, 256})), data.expand({7, 256}), 0.0).sum(1));
    std::vector<double> values;
    for (int i = 0; i < 256; ++i) values.push_back(i + 1);
    expect_outputs(
        k.build(),
        {ints(index, {-19238, -257, 256, 495, 10982377, 0, 255}), reals(Scalar::Float32, values)},
        {reals(Scalar::Float32, {0, 0, 0, 0, 0, 1, 256})}, {.walks = 3});
  }
}

TEST(Reduces, EmptyAxes) {
  for (Scalar dtype : {Scalar::Float32, Scalar::Int16, Scalar::Bool, Scalar::UInt64}) {
    KernelBuilder k;
    Array x = k.input(dtype, {3, 0});
    k.output(x.sum(1));
    k.output(x.max(1));
    DType t = dtype;
    Values lowest = t.is_float() ? reals(t, std::vector<double>(3, -HUGE_VAL))
                                 : ints(t, std::vector<int64_t>(3, t.min_int()));
    expect_outputs(k.build(), {zeros(dtype, 0)}, {zeros(dtype, 3), lowest});
  }
}

TEST(Reduces, EmptyIterationSpaces) {
  for (const Shape& shape : {Shape{0}, Shape{3, 0, 5}}) {
    KernelBuilder k;
    k.output(k.input(Scalar::Float32, shape) + 1.0);
    expect_outputs(k.build(), {zeros(Scalar::Float32, 0)}, {zeros(Scalar::Float32, 0)});
  }
}

TEST(Reduces, UnrollThatDoesNotDivideIsRefused) {
  KernelBuilder k;
  k.output(k.input(Scalar::Float32, {3}).sum(0));
  Ast ast = k.build();
  std::vector<Values> in = {reals(Scalar::Float32, {4, 1, 0})};
  expect_outputs(ast, in, {reals(Scalar::Float32, {5})});
  Target target = generic_cpu_target();
  Schedule schedule(ast, target);
  EXPECT_THROW(schedule.apply(Opt{OptOp::UNROLL, 0, 2}), ScheduleError);
  EXPECT_TRUE(schedule.applied_opts().empty());
}

TEST(Reduces, IntegerSumsWrap) {
  KernelBuilder k;
  Array x = k.input(Scalar::Int8, {100});
  k.output(x.sum(0));
  expect_outputs(k.build(), {ints(Scalar::Int8, std::vector<int64_t>(100, 100))},
                 {ints(Scalar::Int8, {10000 - 39 * 256})});
}

TEST(Reduces, SumOfBoolIsOr) {
  KernelBuilder k;
  k.output(k.input(Scalar::Bool, {3, 5}).sum(1));
  expect_outputs(k.build(), {ints(Scalar::Bool, {0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 1, 1, 1, 1})},
                 {ints(Scalar::Bool, {0, 1, 1})});
}

}  // namespace
}  // namespace quern
