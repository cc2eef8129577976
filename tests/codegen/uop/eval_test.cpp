// The semantics of op.h for one lane.

#include "quern/codegen/uop/eval.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace quern {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

int64_t ints(Op op, DType t, int64_t a, int64_t b) {
  int64_t src[] = {a, b};
  return eval(op, t, is_compare(op) ? DType(Scalar::Bool) : t, src);
}

double reals(Op op, DType t, double a, double b) {
  int64_t src[] = {float_bits(a), float_bits(b)};
  return bits_float(eval(op, t, t, src));
}

int64_t cast(DType from, DType to, int64_t lane) { return eval(Op::CAST, from, to, {&lane, 1}); }

TEST(Eval, IntegerDivisionIsTotal) {
  for (Scalar scalar : {Scalar::Int8, Scalar::Int16, Scalar::Int32, Scalar::Int64}) {
    DType t = scalar;
    EXPECT_EQ(ints(Op::DIV, t, t.min_int(), -1), t.min_int());
    EXPECT_EQ(ints(Op::MOD, t, t.min_int(), -1), 0);
    for (Op op : {Op::DIV, Op::MOD, Op::FLOORDIV, Op::FLOORMOD}) EXPECT_EQ(ints(op, t, 7, 0), 0);
    EXPECT_EQ(ints(Op::DIV, t, -7, 2), -3);
    EXPECT_EQ(ints(Op::MOD, t, -7, 2), -1);
    EXPECT_EQ(ints(Op::FLOORDIV, t, -7, 2), -4);
    EXPECT_EQ(ints(Op::FLOORMOD, t, -7, 2), 1);
    EXPECT_EQ(ints(Op::FLOORMOD, t, 7, -2), -1);
  }
  EXPECT_EQ(ints(Op::DIV, Scalar::UInt64, -1, 2), INT64_MAX);
}

TEST(Eval, IntegersWrap) {
  EXPECT_EQ(ints(Op::ADD, Scalar::Int8, 127, 1), -128);
  EXPECT_EQ(ints(Op::SUB, Scalar::UInt16, 0, 1), 65535);
  EXPECT_EQ(ints(Op::MUL, Scalar::Int32, 1 << 20, 1 << 12), 0);
  EXPECT_EQ(ints(Op::ADD, Scalar::Int64, INT64_MAX, 1), INT64_MIN);
  int64_t lowest = INT64_MIN;
  EXPECT_EQ(eval(Op::NEG, Scalar::Int64, Scalar::Int64, {&lowest, 1}), INT64_MIN);
}

TEST(Eval, UnsignedComparesUseAllBits) {
  EXPECT_EQ(ints(Op::CMPLT, Scalar::UInt64, 1, -1), 1);
  EXPECT_EQ(ints(Op::CMPLT, Scalar::Int64, 1, -1), 0);
  EXPECT_EQ(ints(Op::MAX, Scalar::UInt64, 1, -1), -1);
}

TEST(Eval, BoolAlgebra) {
  struct Row {
    Op op;
    int64_t of00, of01, of10, of11;
  };
  for (Row row :
       {Row{Op::ADD, 0, 1, 1, 1}, Row{Op::MUL, 0, 0, 0, 1}, Row{Op::MAX, 0, 1, 1, 1},
        Row{Op::SUB, 0, 1, 1, 0}, Row{Op::XOR, 0, 1, 1, 0}, Row{Op::AND, 0, 0, 0, 1},
        Row{Op::OR, 0, 1, 1, 1}, Row{Op::CMPLT, 0, 1, 0, 0}, Row{Op::CMPEQ, 1, 0, 0, 1}}) {
    EXPECT_EQ(ints(row.op, Scalar::Bool, 0, 0), row.of00) << name(row.op);
    EXPECT_EQ(ints(row.op, Scalar::Bool, 0, 1), row.of01) << name(row.op);
    EXPECT_EQ(ints(row.op, Scalar::Bool, 1, 0), row.of10) << name(row.op);
    EXPECT_EQ(ints(row.op, Scalar::Bool, 1, 1), row.of11) << name(row.op);
  }
}

TEST(Eval, NanRules) {
  for (Scalar t : {Scalar::Float16, Scalar::BFloat16, Scalar::Float32, Scalar::Float64}) {
    EXPECT_TRUE(std::isnan(reals(Op::MAX, t, kNan, 1)));
    EXPECT_TRUE(std::isnan(reals(Op::MAX, t, 1, kNan)));
    EXPECT_TRUE(std::isnan(reals(Op::MUL, t, kInf, 0)));
    EXPECT_TRUE(std::isnan(reals(Op::DIV, t, 0, 0)));
    EXPECT_EQ(reals(Op::DIV, t, 1, -0.0), -kInf);
    for (Op op : {Op::CMPLT, Op::CMPEQ})
      for (auto [a, b] : {std::pair(kNan, 1.0), std::pair(1.0, kNan), std::pair(kNan, kNan)})
        EXPECT_EQ(ints(op, t, float_bits(a), float_bits(b)), 0);
  }
}

TEST(Eval, SpecialValuesOfFunctions) {
  auto f = [](Op op, double x) {
    int64_t src = float_bits(x);
    return bits_float(eval(op, Scalar::Float32, Scalar::Float32, {&src, 1}));
  };
  EXPECT_EQ(f(Op::EXP2, -kInf), 0);
  EXPECT_EQ(f(Op::EXP2, 200), kInf);
  EXPECT_EQ(f(Op::LOG2, 0), -kInf);
  EXPECT_TRUE(std::isnan(f(Op::LOG2, -1)));
  EXPECT_TRUE(std::isnan(f(Op::SIN, kInf)));
  EXPECT_TRUE(std::signbit(f(Op::SQRT, -0.0)));
  EXPECT_TRUE(std::isnan(f(Op::SQRT, -1)));
  EXPECT_EQ(f(Op::TRUNC, -1.75), -1);
}

TEST(Eval, FloatCastsSaturate) {
  auto to = [](Scalar t, double x) { return cast(Scalar::Float64, t, float_bits(x)); };
  EXPECT_EQ(to(Scalar::Int8, 1e9), 127);
  EXPECT_EQ(to(Scalar::Int8, -1e9), -128);
  EXPECT_EQ(to(Scalar::UInt8, -0.9), 0);
  EXPECT_EQ(to(Scalar::Int64, 0x1p63), INT64_MAX);
  EXPECT_EQ(to(Scalar::Int64, -kInf), INT64_MIN);
  EXPECT_EQ(to(Scalar::UInt64, 0x1p64), -1);
  EXPECT_EQ(to(Scalar::UInt64, 0x1p63), INT64_MIN);
  EXPECT_EQ(to(Scalar::Int32, kNan), 0);
  EXPECT_EQ(to(Scalar::Bool, kNan), 1);
  EXPECT_EQ(to(Scalar::Bool, 0.25), 1);
  EXPECT_EQ(to(Scalar::Bool, -0.0), 0);
}

TEST(Eval, IntegersRoundToFloats) {
  auto to = [](Scalar t, Scalar from, int64_t x) { return bits_float(cast(from, t, x)); };
  EXPECT_EQ(to(Scalar::Float32, Scalar::Int32, 16777217), 16777216);
  EXPECT_EQ(to(Scalar::Float32, Scalar::Int64, (int64_t{1} << 60) + (int64_t{1} << 36) + 1),
            0x1p60 + 0x1p37)
      << "rounded once, not by way of a double";
  EXPECT_EQ(to(Scalar::Float64, Scalar::UInt64, -1), 0x1p64);
  EXPECT_EQ(to(Scalar::Float16, Scalar::Int32, 65520), kInf);
  EXPECT_EQ(to(Scalar::Float16, Scalar::Int32, 65519), 65504);
}

TEST(Eval, RoundsToNearestEven) {
  EXPECT_EQ(round_to(Scalar::Float16, 1 + 0x1p-11), 1);
  EXPECT_EQ(round_to(Scalar::Float16, 1 + 3 * 0x1p-11), 1 + 0x1p-9);
  EXPECT_EQ(round_to(Scalar::Float16, 0x1p-25), 0);
  EXPECT_EQ(round_to(Scalar::Float16, 0x1.8p-24), 0x1p-23);
  EXPECT_EQ(round_to(Scalar::BFloat16, 1 + 0x1p-8), 1);
  EXPECT_EQ(round_to(Scalar::BFloat16, 1 + 3 * 0x1p-8), 1 + 0x1p-6);
  EXPECT_EQ(round_to(Scalar::BFloat16, 3.4e38), kInf);
  EXPECT_EQ(round_to(Scalar::Float32, 0x1p-150), 0);
  EXPECT_EQ(round_to(Scalar::Float32, 0x1.8p-149), 0x1p-148);
}

TEST(Eval, EveryHalfIsStoredAndRead) {
  for (Scalar t : {Scalar::Float16, Scalar::BFloat16})
    for (uint64_t bits = 0; bits < 65536; ++bits) {
      int64_t lane = from_storage(t, bits);
      double value = bits_float(lane);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(bits_float(from_storage(t, to_storage(t, lane)))));
        continue;
      }
      EXPECT_EQ(to_storage(t, lane), bits);
      EXPECT_EQ(round_to(t, value), value);
    }
}

RC_GTEST_PROP(Eval, IntegersAreStoredAndRead, (int64_t value)) {
  for (Scalar scalar : {Scalar::Bool, Scalar::Int8, Scalar::UInt8, Scalar::Int16, Scalar::UInt16,
                        Scalar::Int32, Scalar::UInt32, Scalar::Int64, Scalar::UInt64}) {
    int64_t lane = wrap_to(scalar, value);
    RC_ASSERT(from_storage(scalar, to_storage(scalar, lane)) == lane);
    RC_ASSERT(wrap_to(scalar, lane) == lane);
  }
}

TEST(Eval, ReduceIdentitiesAreTheLowestValues) {
  EXPECT_EQ(reduce_identity(Op::ADD, Scalar::Int8), 0);
  EXPECT_EQ(bits_float(reduce_identity(Op::ADD, Scalar::Float32)), 0);
  EXPECT_EQ(bits_float(reduce_identity(Op::MAX, Scalar::Float16)), -kInf);
  EXPECT_EQ(reduce_identity(Op::MAX, Scalar::Int64), INT64_MIN);
  EXPECT_EQ(reduce_identity(Op::MAX, Scalar::UInt8), 0);
  EXPECT_EQ(reduce_identity(Op::MAX, Scalar::Bool), 0);
}

}  // namespace
}  // namespace quern
