#include "quern/codegen/simplify/simplify.h"

#include <random>
#include <unordered_map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "quern/codegen/simplify/index_sum.h"
#include "quern/codegen/simplify/rules.h"
#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

// The value of a scalar expression whose leaves are variables.
int64_t evaluate(UOp root, std::span<const int64_t> variables) {
  std::unordered_map<UOp, int64_t> values;
  for (UOp u : reachable({&root, 1})) {
    if (u->op == Op::CONST) {
      values[u] = u->arg;
    } else if (u->op == Op::DEFINE_VAR || u->op == Op::LOAD) {
      values[u] = variables[static_cast<size_t>(u->op == Op::LOAD ? u->src(1)->arg : u->arg)];
    } else if (is_alu(u->op)) {
      std::array<int64_t, 3> src{};
      for (size_t i = 0; i < u->nsrc; ++i) src[i] = values[u->src(i)];
      values[u] = eval(u->op, u->src().back()->dtype, u->dtype, {src.data(), u->nsrc});
    }
  }
  return values[root];
}

bool same_value(DType dtype, int64_t a, int64_t b) {
  if (!dtype.is_float()) return a == b;
  double x = bits_float(a), y = bits_float(b);
  return (std::isnan(x) && std::isnan(y)) || a == b ||
         (x == 0 && y == 0 && std::signbit(x) == std::signbit(y));
}

// Random expressions over a few leaves, made twice: as they are and simplified.
class RandomExpression {
 public:
  RandomExpression(uint64_t seed, DType dtype, std::span<const Op> ops)
      : random_(seed), dtype_(dtype), ops_(ops) {
    buffer_ = graph_.make(Op::DEFINE_GLOBAL, dtype, {}, 0, {4, 0, 0, 0});
  }

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  // Leaves of Index type have bounds; those of other types may be anything.
  UOp leaf() {
    int64_t i = below(4);
    if (below(3) == 0) return graph_.constant(dtype_, constant());
    if (dtype_.is_index()) return graph_.make(Op::DEFINE_VAR, dtype_, {}, i, {kLow[i], kHigh[i]});
    return graph_.make(Op::LOAD, dtype_, {buffer_, graph_.index(i)});
  }

  int64_t constant() {
    static constexpr double kFloats[] = {0.0, -0.0,     1.0,       -1.0, 2.0,
                                         0.5, INFINITY, -INFINITY, NAN,  3.25};
    if (dtype_.is_float()) return float_bits(kFloats[below(10)]);
    return wrap_to(dtype_, below(25) - 12);
  }

  UOp grow(int depth) {
    if (depth == 0 || below(5) == 0) return leaf();
    Op op = ops_[static_cast<size_t>(below(static_cast<int64_t>(ops_.size())))];
    if (op == Op::WHERE) {
      UOp condition = graph_.make(below(2) ? Op::CMPLT : Op::CMPEQ, Scalar::Bool,
                                  {grow(depth - 1), grow(depth - 1)});
      return graph_.make(op, dtype_, {condition, grow(depth - 1), grow(depth - 1)});
    }
    if (op == Op::FLOORDIV || op == Op::FLOORMOD)
      return graph_.make(op, dtype_, {grow(depth - 1), graph_.constant(dtype_, below(15) - 2)});
    if (dtype_.is_index() && op == Op::MUL && below(4) != 0)
      return graph_.make(op, dtype_, {grow(depth - 1), graph_.constant(dtype_, below(25) - 12)});
    if (info(op).arity == 1) return graph_.make(op, dtype_, {grow(depth - 1)});
    return graph_.make(op, dtype_, {grow(depth - 1), grow(depth - 1)});
  }

  UOp simplified(UOp root) {
    Simplifier s(graph_);
    std::unordered_map<UOp, UOp> made;
    for (UOp u : reachable({&root, 1})) {
      std::vector<UOp> src;
      for (UOp x : u->src()) src.push_back(made[x]);
      made[u] = s.make(u->op, u->dtype, src, u->arg, u->args);
    }
    return made[root];
  }

  std::array<int64_t, 4> values() {
    std::array<int64_t, 4> out{};
    for (int64_t i = 0; i < 4; ++i)
      out[static_cast<size_t>(i)] =
          dtype_.is_index() ? kLow[i] + below(kHigh[i] - kLow[i] + 1) : constant();
    return out;
  }

  static constexpr int64_t kLow[] = {0, 0, -7, 3};
  static constexpr int64_t kHigh[] = {5, 31, 9, 4};

 private:
  std::mt19937_64 random_;
  DType dtype_;
  std::span<const Op> ops_;
  Graph graph_;
  UOp buffer_;
};

constexpr Op kIndexOps[] = {Op::ADD,      Op::SUB,      Op::MUL,      Op::NEG, Op::FLOORDIV,
                            Op::FLOORDIV, Op::FLOORMOD, Op::FLOORMOD, Op::MAX, Op::WHERE};
constexpr Op kIntOps[] = {Op::ADD, Op::SUB, Op::MUL, Op::NEG, Op::DIV,  Op::MOD,
                          Op::MAX, Op::XOR, Op::AND, Op::OR,  Op::WHERE};
// Without MAX, which may give either zero.
constexpr Op kFloatOps[] = {Op::ADD, Op::SUB, Op::MUL, Op::NEG, Op::DIV, Op::WHERE};
constexpr Op kBoolOps[] = {Op::ADD, Op::SUB, Op::MUL, Op::NEG,  Op::MAX,
                           Op::XOR, Op::AND, Op::OR,  Op::WHERE};

void check_random(DType dtype, std::span<const Op> ops, uint64_t seed) {
  RandomExpression e(seed, dtype, ops);
  UOp plain = e.grow(4), simple = e.simplified(plain);
  for (int i = 0; i < 20; ++i) {
    auto at = e.values();
    int64_t expected = evaluate(plain, at), got = evaluate(simple, at);
    ASSERT_TRUE(same_value(dtype, expected, got))
        << to_string(dtype) << " seed " << seed << ": " << expected << " became " << got;
    if (!dtype.is_float() && dtype.scalar != Scalar::UInt64) {
      ASSERT_LE(simple->vmin, got) << "seed " << seed;
      ASSERT_GE(simple->vmax, got) << "seed " << seed;
    }
  }
}

TEST(Simplify, IndexExpressionsKeepTheirValue) {
  for (uint64_t seed = 0; seed < 20000; ++seed)
    ASSERT_NO_FATAL_FAILURE(check_random(Scalar::Index, kIndexOps, seed));
}

TEST(Simplify, IntegerExpressionsKeepTheirValue) {
  for (uint64_t seed = 0; seed < 3000; ++seed)
    for (Scalar t : {Scalar::Int8, Scalar::UInt8, Scalar::Int32, Scalar::UInt32, Scalar::Int64,
                     Scalar::UInt64})
      ASSERT_NO_FATAL_FAILURE(check_random(t, kIntOps, seed));
}

TEST(Simplify, FloatExpressionsKeepTheirValueBitForBit) {
  for (uint64_t seed = 0; seed < 5000; ++seed)
    for (Scalar t : {Scalar::Float16, Scalar::Float32, Scalar::Float64})
      ASSERT_NO_FATAL_FAILURE(check_random(t, kFloatOps, seed));
}

TEST(Simplify, BoolExpressionsKeepTheirValue) {
  for (uint64_t seed = 0; seed < 5000; ++seed)
    ASSERT_NO_FATAL_FAILURE(check_random(Scalar::Bool, kBoolOps, seed));
}

TEST(Simplify, EveryRuleReadsAndHasAnOpThatItAppliesTo) {
  EXPECT_GT(all_rules().size(), 40u);
  for (const Rule& rule : all_rules())
    EXPECT_FALSE(rules_for(rule.pattern.root()).empty()) << rule.text;
}

// Index algebra by name: each of these is one node.
class IndexAlgebra : public testing::Test {
 protected:
  UOp var(int64_t i, int64_t max, int64_t min = 0) {
    return g.make(Op::DEFINE_VAR, Scalar::Index, {}, i, {min, max});
  }
  Graph g;
  Simplifier s{g};
};

TEST_F(IndexAlgebra, SumsAreCanonical) {
  UOp a = var(0, 9), b = var(1, 9);
  EXPECT_EQ(s.add(s.add(a, 3), b), s.add(s.add(b, 1), s.add(a, 2)));
  EXPECT_EQ(s.sub(s.add(a, b), a), b);
  EXPECT_EQ(s.mul(s.add(a, b), 4), s.add(s.mul(b, 4), s.mul(a, 4)));
}

TEST_F(IndexAlgebra, DivisionByBounds) {
  UOp a = var(0, 9), b = var(1, 3);
  EXPECT_EQ(s.floordiv(s.add(s.mul(a, 4), b), 4), a);
  EXPECT_EQ(s.floormod(s.add(s.mul(a, 4), b), 4), b);
  EXPECT_EQ(s.floordiv(b, 4), g.index(0));
  EXPECT_EQ(s.floordiv(s.floordiv(a, 2), 3), s.floordiv(a, 6));
  EXPECT_EQ(s.floordiv(s.add(s.mul(a, 6), s.mul(b, 2)), 4), s.floordiv(s.add(s.mul(a, 3), b), 2));
}

TEST_F(IndexAlgebra, QuotientAndRemainderMakeTheWhole) {
  UOp a = var(0, 99);
  EXPECT_EQ(s.add(s.mul(s.floordiv(a, 7), 7), s.floormod(a, 7)), a);
  EXPECT_EQ(s.add(s.mul(s.floormod(s.floordiv(a, 7), 3), 7), s.floormod(a, 7)), s.floormod(a, 21));
}

TEST_F(IndexAlgebra, ComparisonsLoseCommonFactors) {
  UOp a = var(0, 9), b = var(1, 3);
  EXPECT_EQ(s.less(s.add(s.mul(a, 4), b), g.index(12)), s.less(a, g.index(3)));
  EXPECT_EQ(s.less(a, g.index(10)), g.boolean(true));
  EXPECT_EQ(s.less(s.mul(a, 6), s.mul(b, 3)), s.less(s.mul(a, 2), b));
}

TEST_F(IndexAlgebra, ProductsOfVariablesDistribute) {
  UOp a = var(0, 9), b = var(1, 3);
  EXPECT_EQ(s.mul(s.add(a, 1), b), s.add(s.mul(a, b), b));
}

// Reported faults: division and remainder of negative ranges, nested division, products that cross
// zero.
TEST_F(IndexAlgebra, NegativeRangesDivideTowardMinusInfinity) {
  UOp i = var(0, 9);
  UOp quotient = s.floordiv(s.mul(i, -10), 11);
  for (int64_t v = 0; v <= 9; ++v)
    EXPECT_EQ(evaluate(quotient, std::array{v}), (-10 * v - (v ? 10 : 0)) / 11) << v;
}

TEST_F(IndexAlgebra, ProductsThatCrossZeroAreNotFolded) {
  UOp x = var(0, 5, -2);
  UOp negative = s.less(s.mul(x, -3), g.index(0));
  EXPECT_EQ(evaluate(negative, std::array<int64_t, 1>{-2}), 0);
  EXPECT_EQ(evaluate(negative, std::array<int64_t, 1>{0}), 0);
  EXPECT_EQ(evaluate(negative, std::array<int64_t, 1>{5}), 1);
}

}  // namespace
}  // namespace quern
