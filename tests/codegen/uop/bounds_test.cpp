// Every value of an expression lies within its node's bounds.

#include "quern/codegen/uop/bounds.h"

#include <array>
#include <random>
#include <unordered_map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

constexpr int kVariables = 3;

// A random tree over variables that take a few values each.
class Tree {
 public:
  Tree(uint64_t seed, DType dtype) : random_(seed), dtype_(dtype) {
    for (int i = 0; i < kVariables; ++i) {
      low_[i] = wrap_to(dtype, pick(-9, 9));
      high_[i] = low_[i] + pick(0, 6);
      if (dtype.is_unsigned()) low_[i] = pick(0, 9), high_[i] = low_[i] + pick(0, 6);
    }
    root_ = grow(4);
  }

  // Calls f(node, value) for every node under every assignment, unless something overflows that
  // Index arithmetic may not.
  template <class F>
  void for_all_values(F&& f) {
    std::array<int64_t, kVariables> v;
    for (v[0] = low_[0]; v[0] <= high_[0]; ++v[0])
      for (v[1] = low_[1]; v[1] <= high_[1]; ++v[1])
        for (v[2] = low_[2]; v[2] <= high_[2]; ++v[2]) {
          std::unordered_map<UOp, int64_t> values;
          for (UOp u : reachable({&root_, 1})) {
            int64_t src[3] = {};
            for (size_t k = 0; k < u->nsrc; ++k) src[k] = values[u->src(k)];
            if (u->op == Op::CONST) values[u] = u->arg;
            else if (u->op == Op::DEFINE_VAR) values[u] = v[static_cast<size_t>(u->arg)];
            else values[u] = eval(u->op, u->src().back()->dtype, u->dtype, {src, u->nsrc});
            f(u, values[u]);
          }
        }
  }

 private:
  int64_t pick(int64_t min, int64_t max) {
    return std::uniform_int_distribution<int64_t>(min, max)(random_);
  }

  UOp leaf() {
    if (pick(0, 2) == 0) return graph_.constant(dtype_, wrap_to(dtype_, pick(-12, 12)));
    int64_t i = pick(0, kVariables - 1);
    size_t k = static_cast<size_t>(i);
    return graph_.make(Op::DEFINE_VAR, dtype_, {}, i, {low_[k], high_[k]});
  }

  UOp grow(int depth) {
    if (depth == 0 || pick(0, 5) == 0) return leaf();
    constexpr Op kOps[] = {Op::ADD, Op::SUB,      Op::MUL,      Op::MAX, Op::DIV,
                           Op::MOD, Op::FLOORDIV, Op::FLOORMOD, Op::NEG, Op::WHERE,
                           Op::AND, Op::OR,       Op::XOR,      Op::SHL, Op::SHR};
    Op op = kOps[pick(0, std::size(kOps) - 1)];
    bool is_bitwise =
        op == Op::AND || op == Op::OR || op == Op::XOR || op == Op::SHL || op == Op::SHR;
    if (is_bitwise && dtype_.is_index()) op = Op::ADD;
    switch (op) {
      case Op::NEG: return graph_.make(op, dtype_, {grow(depth - 1)});
      case Op::SHL:
      case Op::SHR:
        return graph_.make(op, dtype_, {grow(depth - 1), graph_.constant(dtype_, pick(0, 7))});
      case Op::WHERE: {
        UOp c = graph_.make(pick(0, 1) ? Op::CMPLT : Op::CMPEQ, Scalar::Bool,
                            {grow(depth - 1), grow(depth - 1)});
        return graph_.make(op, dtype_, {c, grow(depth - 1), grow(depth - 1)});
      }
      default: return graph_.make(op, dtype_, {grow(depth - 1), grow(depth - 1)});
    }
  }

  std::mt19937_64 random_;
  DType dtype_;
  std::array<int64_t, kVariables> low_, high_;
  Graph graph_;
  UOp root_ = nullptr;
};

void check(uint64_t seed, DType dtype) {
  Tree tree(seed, dtype);
  tree.for_all_values([&](UOp u, int64_t value) {
    RC_ASSERT(u->vmin <= value);
    // The greatest uint64 does not fit in an int64 and stands for "anything".
    RC_ASSERT(value <= u->vmax || dtype.scalar == Scalar::UInt64);
  });
}

RC_GTEST_PROP(Bounds, OfIndex, (uint64_t seed)) { check(seed, Scalar::Index); }
RC_GTEST_PROP(Bounds, OfInt8ThatWraps, (uint64_t seed)) { check(seed, Scalar::Int8); }
RC_GTEST_PROP(Bounds, OfUInt8ThatWraps, (uint64_t seed)) { check(seed, Scalar::UInt8); }
RC_GTEST_PROP(Bounds, OfInt32, (uint64_t seed)) { check(seed, Scalar::Int32); }
RC_GTEST_PROP(Bounds, OfInt64, (uint64_t seed)) { check(seed, Scalar::Int64); }
RC_GTEST_PROP(Bounds, OfUInt32, (uint64_t seed)) { check(seed, Scalar::UInt32); }

// A product is least or greatest at a corner, also where a side crosses zero.
TEST(Bounds, ProductsThatCrossZero) {
  Graph g;
  auto var = [&](int64_t i, int64_t min, int64_t max) {
    return g.make(Op::DEFINE_VAR, Scalar::Index, {}, i, {min, max});
  };
  UOp x = var(0, -2, 5), y = var(1, -4, 3);
  UOp scaled = g.make(Op::MUL, Scalar::Index, {x, g.index(-3)});
  EXPECT_EQ(scaled->vmin, -15);
  EXPECT_EQ(scaled->vmax, 6);
  UOp product = g.make(Op::MUL, Scalar::Index, {x, y});
  EXPECT_EQ(product->vmin, -20);
  EXPECT_EQ(product->vmax, 15);
}

TEST(Bounds, ACastToFloatAndBackIsRounded) {
  Graph g;
  UOp n = g.make(Op::DEFINE_VAR, Scalar::Int32, {}, 0, {0, 16777219});
  UOp back = g.make(Op::CAST, Scalar::Int32, {g.make(Op::CAST, Scalar::Float32, {n})});
  EXPECT_GE(back->vmax, 16777220) << "16777219 rounds up";
}

}  // namespace
}  // namespace quern
