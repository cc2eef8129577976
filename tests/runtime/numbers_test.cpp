// What ops give at the edges of their types, on every device and with every kind of schedule.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "quern/codegen/ast/array.h"
#include "tests/kernel_check.h"

namespace quern {
namespace {

using namespace test;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// A kernel of two inputs of that type and size, and what `f` makes of them.
template <class F>
Ast binary(DType dtype, int64_t size, F&& f) {
  KernelBuilder k;
  Array a = k.input(dtype, {size}), b = k.input(dtype, {size});
  f(k, a, b);
  return k.build();
}

TEST(Numbers, IntegerDivisionIsTotal) {
  for (Scalar scalar : {Scalar::Int8, Scalar::Int16, Scalar::Int32, Scalar::Int64}) {
    DType dtype = scalar;
    // 19 elements: vectors and a scalar tail.
    std::vector<int64_t> a, b, quotients, remainders;
    int64_t min = dtype.min_int();
    for (int i = 0; i < 19; ++i) {
      a.push_back(std::vector<int64_t>{min, min, 7, 0, -7, 7, min}[i % 7]);
      b.push_back(std::vector<int64_t>{-1, 0, 0, 0, 2, -2, 1}[i % 7]);
      quotients.push_back(std::vector<int64_t>{min, 0, 0, 0, -3, -3, min}[i % 7]);
      remainders.push_back(std::vector<int64_t>{0, 0, 0, 0, -1, 1, 0}[i % 7]);
    }
    std::vector<Values> inputs = {ints(dtype, a), ints(dtype, b)};
    Values q = ints(dtype, quotients), r = ints(dtype, remainders);
    expect_outputs(binary(dtype, 19, [](auto& k, auto x, auto y) { k.output(x / y); }), inputs,
                   {q});
    expect_outputs(binary(dtype, 19, [](auto& k, auto x, auto y) { k.output(x % y); }), inputs,
                   {r});
    expect_outputs(binary(dtype, 19,
                          [](auto& k, auto x, auto y) {
                            k.output(x / y);
                            k.output(x % y);
                          }),
                   inputs, {q, r});
  }
}

TEST(Numbers, UnsignedDivisionUsesAllBits) {
  Values a = ints(Scalar::UInt64, {-1, -1, INT64_MIN, 5}), b = ints(Scalar::UInt64, {2, -1, 3, 0});
  expect_outputs(binary(Scalar::UInt64, 4,
                        [](auto& k, auto x, auto y) {
                          k.output(x / y);
                          k.output(x % y);
                        }),
                 {a, b},
                 {ints(Scalar::UInt64, {INT64_MAX, 1, 3074457345618258602, 0}),
                  ints(Scalar::UInt64, {1, 0, 2, 0})});
}

TEST(Numbers, MaskedOffLanesDoNotDivide) {
  KernelBuilder k;
  Array a = k.input(Scalar::Int32, {5}), b = k.input(Scalar::Int32, {5});
  k.output(a.pad({{2, 4}}) / b.pad({{2, 4}}));
  expect_outputs(k.build(),
                 {ints(Scalar::Int32, {8, 9, 10, 11, 12}), ints(Scalar::Int32, {1, 2, 3, 4, 5})},
                 {ints(Scalar::Int32, {0, 0, 8, 4, 3, 2, 2, 0, 0, 0, 0})});
}

TEST(Numbers, ComparisonsWithNanAreFalse) {
  Values a = reals(Scalar::Float32, {kNan, 1, kNan, 1, 2, kInf, -kInf, 0}),
         b = reals(Scalar::Float32, {1, kNan, kNan, 1, 1, kInf, kInf, -0.0});
  Ast ast = binary(Scalar::Float32, 8, [](auto& k, auto x, auto y) {
    k.output(less(x, y));
    k.output(equal(x, y));
    k.output(where(less(x, y), x, 7.0));
  });
  expect_outputs(
      ast, {a, b},
      {ints(Scalar::Bool, {0, 0, 0, 0, 0, 0, 1, 0}), ints(Scalar::Bool, {0, 0, 0, 1, 0, 1, 0, 1}),
       reals(Scalar::Float32, {7, 7, 7, 7, 7, 7, -kInf, 7})});
}

TEST(Numbers, AlgebraDoesNotForgetNanInfinityAndSignOfZero) {
  for (Scalar dtype : {Scalar::Float16, Scalar::BFloat16, Scalar::Float32, Scalar::Float64}) {
    KernelBuilder k;
    Array x = k.input(dtype, {5});
    k.output(x * 0.0);
    k.output(x - x);
    k.output(x / x);
    k.output(1.0 / -x);
    k.output(x + -0.0);
    expect_outputs(
        k.build(), {reals(dtype, {kInf, kNan, 0, -0.0, 2})},
        {reals(dtype, {kNan, kNan, 0, -0.0, 0}), reals(dtype, {kNan, kNan, 0, 0, 0}),
         reals(dtype, {kNan, kNan, kNan, kNan, 1}), reals(dtype, {-0.0, kNan, -kInf, kInf, -0.5}),
         reals(dtype, {kInf, kNan, 0, -0.0, 2})});
  }
}

TEST(Numbers, MaxPropagatesNan) {
  Ast ast = binary(Scalar::Float32, 4, [](auto& k, auto x, auto y) { k.output(maximum(x, y)); });
  expect_outputs(
      ast,
      {reals(Scalar::Float32, {kNan, 1, kNan, -kInf}), reals(Scalar::Float32, {1, kNan, kNan, 3})},
      {reals(Scalar::Float32, {kNan, kNan, kNan, 3})});
}

TEST(Numbers, FloatsAreNoIntegersInComparisons) {
  KernelBuilder k;
  Array x = k.input(Scalar::Float32, {4});
  k.output(less(1.0, x) * less(x, 2.0));
  expect_outputs(k.build(), {reals(Scalar::Float32, {1.2, 1.2, 1.2, 3.2})},
                 {ints(Scalar::Bool, {1, 1, 1, 0})});
}

TEST(Numbers, CastsToBoolAskForNonZero) {
  auto check = [](const Values& in, const std::vector<int64_t>& out) {
    KernelBuilder k;
    k.output(k.input(in.dtype, {static_cast<int64_t>(in.size())}).cast(Scalar::Bool));
    expect_outputs(k.build(), {in}, {ints(Scalar::Bool, out)});
  };
  check(ints(Scalar::Int8, {2, 0, -128}), {1, 0, 1});
  check(ints(Scalar::Int16, {256, 0}), {1, 0});
  check(ints(Scalar::Int64, {int64_t{1} << 32, 0}), {1, 0});
  check(reals(Scalar::Float32, {0.5, kNan, 0, -0.0, 1e-40}), {1, 1, 0, 0, 1});
  check(reals(Scalar::Float16, {0.5, kNan, 0, -0.0, 6e-8}), {1, 1, 0, 0, 1});
}

TEST(Numbers, NegOfBoolIsNot) {
  KernelBuilder k;
  k.output(-k.input(Scalar::Bool, {2}));
  expect_outputs(k.build(), {ints(Scalar::Bool, {0, 1})}, {ints(Scalar::Bool, {1, 0})});
}

TEST(Numbers, CastsOfLargeUnsigned) {
  KernelBuilder k;
  Array x = k.input(Scalar::UInt64, {3});
  k.output(x.cast(Scalar::Float64));
  k.output(x.cast(Scalar::Float32));
  int64_t big = (int64_t{1} << 32) + 1;
  expect_outputs(
      k.build(), {ints(Scalar::UInt64, {big, -1, INT64_MIN + 1})},
      {reals(Scalar::Float64, {4294967297.0, 18446744073709551616.0, 9223372036854775808.0}),
       reals(Scalar::Float32, {4294967296.0, 18446744073709551616.0, 9223372036854775808.0})});
}

TEST(Numbers, CastsToIntegersSaturate) {
  std::vector<double> values = {1e30, -1e30, kInf, -kInf, kNan, 1.9, -1.9, 300, -0.5};
  for (Scalar from : {Scalar::BFloat16, Scalar::Float32, Scalar::Float64}) {
    for (Scalar scalar : {Scalar::Int8, Scalar::UInt8, Scalar::Int16, Scalar::UInt16, Scalar::Int32,
                          Scalar::UInt32, Scalar::Int64, Scalar::UInt64}) {
      DType to = scalar;
      int64_t min = to.min_int(), max = scalar == Scalar::UInt64 ? -1 : to.max_int();
      bool is_signed = to.is_signed();
      KernelBuilder k;
      k.output(k.input(from, {9}).cast(to));
      expect_outputs(k.build(), {reals(from, values)},
                     {ints(to, {max, min, max, min, 0, 1, is_signed ? -1 : 0,
                                to.bits() == 8 ? max : 300, 0})});
    }
  }
}

TEST(Numbers, CastRoundsToFloatAndBack) {
  KernelBuilder k;
  SInt n = k.variable("n", 0, 16777219);
  Array x = k.value(n, Scalar::Int32, {1});
  k.output(equal(x.cast(Scalar::Float32).cast(Scalar::Int32), x));
  k.output(x.cast(Scalar::Float32).cast(Scalar::Int32));
  expect_outputs(k.build(), {}, {ints(Scalar::Bool, {0}), ints(Scalar::Int32, {16777216})},
                 {.vars = {{"n", 16777217}}});
}

TEST(Numbers, SinOfLargeArguments) {
  std::vector<double> x = {1e5, 1e6, 6.7e8, 1e10, 3.4e38, 1e-7, kInf, -kInf, kNan, 0}, y;
  for (double v : x) y.push_back(std::sin(static_cast<double>(static_cast<float>(v))));
  KernelBuilder k;
  k.output(sin(k.input(Scalar::Float32, {10})));
  expect_near(k.build(), {reals(Scalar::Float32, x)}, {reals(Scalar::Float32, y)}, 2e-7);
}

TEST(Numbers, TranscendentalsAtTheirEdges) {
  KernelBuilder k;
  Array x = k.input(Scalar::Float32, {8});
  k.output(exp2(x));
  k.output(log2(x));
  k.output(sqrt(x));
  expect_outputs(k.build(), {reals(Scalar::Float32, {0, -0.0, 1, kInf, -kInf, kNan, -1, 4})},
                 {reals(Scalar::Float32, {1, 1, 2, kInf, 0, kNan, 0.5, 16}),
                  reals(Scalar::Float32, {-kInf, -kInf, 0, kInf, kNan, kNan, kNan, 2}),
                  reals(Scalar::Float32, {0, -0.0, 1, kInf, kNan, kNan, kNan, 2})});
}

TEST(Numbers, AProductMinusItselfIsZero) {
  std::vector<double> a, b;
  for (int i = 0; i < 19; ++i) {
    a.push_back(1 + i * 0x1p-23);
    b.push_back(1 + i * 0x1.8p-22);
  }
  Ast ast = binary(Scalar::Float32, 19, [](auto& k, auto x, auto y) {
    Array product = x * y;
    k.output(product - product);
  });
  expect_outputs(ast, {reals(Scalar::Float32, a), reals(Scalar::Float32, b)},
                 {zeros(Scalar::Float32, 19)});
}

// a * b in one kernel, its difference to a * b in the next: each product is rounded.
TEST(Numbers, ElementwiseProductsAreNotContracted) {
  std::vector<double> a(19, 1 + 0x1p-12), products(19, 1 + 0x1p-11);
  KernelBuilder k;
  Array x = k.input(Scalar::Float32, {19}), p = k.input(Scalar::Float32, {19});
  k.output(x * x - p);
  expect_outputs(k.build(), {reals(Scalar::Float32, a), reals(Scalar::Float32, products)},
                 {zeros(Scalar::Float32, 19)});
}

TEST(Numbers, DivisionOfANegativeRange) {
  std::vector<int64_t> i, q, r;
  for (int64_t n = 0; n < 10; ++n) {
    i.push_back(n);
    q.push_back(n * -10 / 11);
    r.push_back(n * -10 % 11);
  }
  KernelBuilder loaded;
  Array x = loaded.input(Scalar::Int32, {10}) * -10.0;
  loaded.output(x / 11.0);
  loaded.output(x % 11.0);
  expect_outputs(loaded.build(), {ints(Scalar::Int32, i)},
                 {ints(Scalar::Int32, q), ints(Scalar::Int32, r)});

  KernelBuilder variable;
  Array v = variable.value(variable.variable("i", 0, 9), Scalar::Int32, {1}) * -10.0;
  variable.output(v / 11.0);
  variable.output(v % 11.0);
  Ast ast = variable.build();
  for (size_t n = 0; n < 10; ++n)
    expect_outputs(ast, {}, {ints(Scalar::Int32, {q[n]}), ints(Scalar::Int32, {r[n]})},
                   {.vars = {{"i", static_cast<int64_t>(n)}}});
}

TEST(Numbers, NestedDivisionOfVariables) {
  KernelBuilder k;
  Array a = k.value(k.variable("a", 0, 124), Scalar::Int32, {1});
  Array b = k.value(k.variable("b", -100, 100), Scalar::Int32, {1});
  k.output(a / -2.0 / -3.0);
  k.output(((a + 10.0) / -2.0 + 10.0) / -4.0);
  k.output((a * 25.0 + 3.0) % 10.0 + (a * 25.0 + 3.0) / 10.0 * 10.0);
  k.output(b / -3.0 % -2.0 + b / 6.0 * -2.0);
  Ast ast = k.build();
  for (int64_t x = 0; x <= 124; x += 4)
    for (int64_t y : {-100, -7, -6, -1, 0, 1, 5, 6, 100})
      expect_outputs(
          ast, {},
          {ints(Scalar::Int32, {x / -2 / -3}), ints(Scalar::Int32, {((x + 10) / -2 + 10) / -4}),
           ints(Scalar::Int32, {25 * x + 3}), ints(Scalar::Int32, {y / -3 % -2 + y / 6 * -2})},
          {.vars = {{"a", x}, {"b", y}}, .opts = {{}}});
}

TEST(Numbers, ProductsThatCrossZero) {
  KernelBuilder k;
  Array x = k.value(k.variable("x", -2, 5), Scalar::Int32, {1});
  Array y = k.value(k.variable("y", -4, 3), Scalar::Int32, {1});
  k.output(where(less(x * -3.0, 0.0), k.constant(Scalar::Int32, 1, {1}), 2.0));
  k.output(where(less(x * y, 0.0), k.constant(Scalar::Int32, 1, {1}), 2.0));
  Ast ast = k.build();
  for (int64_t i = -2; i <= 5; ++i)
    for (int64_t j = -4; j <= 3; ++j)
      expect_outputs(
          ast, {},
          {ints(Scalar::Int32, {i * -3 < 0 ? 1 : 2}), ints(Scalar::Int32, {i * j < 0 ? 1 : 2})},
          {.vars = {{"x", i}, {"y", j}}, .opts = {{}}});
}

TEST(Numbers, HalfRoundsAfterEachOp) {
  Ast ast = binary(Scalar::Float16, 3, [](auto& k, auto x, auto y) { k.output((x + y) - x); });
  expect_outputs(
      ast, {reals(Scalar::Float16, {2048, 65504, 1}), reals(Scalar::Float16, {1, 65504, 0x1p-11})},
      {reals(Scalar::Float16, {0, kInf, 0})});
}

}  // namespace
}  // namespace quern
