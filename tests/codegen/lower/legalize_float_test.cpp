#include "quern/codegen/lower/legalize_float.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

constexpr Scalar kHalves[] = {Scalar::Float16, Scalar::BFloat16};

// Storage bits of each buffer's elements, by buffer index.
using Memory = std::map<int64_t, std::vector<uint64_t>>;

// Executes the STOREs that a sink depends on, lane by lane and by eval() alone.
class Executor {
 public:
  explicit Executor(UOp sink) : nodes_(reachable({&sink, 1})), values_(sink->id + 1) {}

  void run(Memory& memory) {
    for (UOp u : nodes_) {
      std::vector<int64_t>& out = values_[u->id];
      out.resize(static_cast<size_t>(u->lanes()));
      if (is_alu(u->op)) alu(u, out);
      if (u->op == Op::CONST) std::ranges::fill(out, u->arg);
      if (u->op == Op::VCONST) out.assign(u->args.begin(), u->args.end());
      if (u->op == Op::LOAD) load(u, memory, out);
      if (u->op == Op::STORE) store(u, memory);
      if (u->op == Op::GEP)
        for (size_t i = 0; i < out.size(); ++i)
          out[i] = lane(u->src(0), static_cast<size_t>(u->args[i]));
      if (u->op == Op::VECTORIZE) {
        out.clear();
        for (UOp s : u->src()) out.insert(out.end(), values_[s->id].begin(), values_[s->id].end());
        out.resize(static_cast<size_t>(u->lanes()), out[0]);
      }
    }
  }

 private:
  int64_t lane(UOp u, size_t i) const {
    const std::vector<int64_t>& v = values_[u->id];
    return v[v.size() == 1 ? 0 : i];
  }

  void alu(UOp u, std::vector<int64_t>& out) {
    for (size_t i = 0; i < out.size(); ++i) {
      int64_t src[3];
      for (size_t k = 0; k < u->nsrc; ++k) src[k] = lane(u->src(k), i);
      out[i] = eval(u->op, u->src().back()->dtype, u->dtype, {src, u->nsrc});
    }
  }

  uint64_t& element(UOp access, Memory& memory, size_t i) {
    return memory.at(access->src(0)->arg).at(static_cast<size_t>(lane(access->src(1), 0)) + i);
  }

  void load(UOp u, Memory& memory, std::vector<int64_t>& out) {
    for (size_t i = 0; i < out.size(); ++i) {
      bool open = !u->gate() || lane(u->gate(), i);
      out[i] = open ? from_storage(u->dtype.element(), element(u, memory, i))
                    : lane(u->alternative(), i);
    }
  }

  void store(UOp u, Memory& memory) {
    for (size_t i = 0; i < static_cast<size_t>(u->src(2)->lanes()); ++i)
      if (!u->gate() || lane(u->gate(), i))
        element(u, memory, i) = to_storage(u->src(2)->dtype.element(), lane(u->src(2), i));
  }

  std::vector<UOp> nodes_;
  std::vector<std::vector<int64_t>> values_;
};

// A kernel that reads its inputs from the first buffers, one element each, and stores one result.
struct Kernel {
  Graph g;
  std::vector<DType> types;
  UOp sink = nullptr;

  UOp input(DType type) {
    auto number = static_cast<int64_t>(types.size());
    types.push_back(type);
    UOp buffer = g.make(Op::DEFINE_GLOBAL, type.element(), {}, number, {type.lanes, 0, 0, 0});
    return g.make(Op::LOAD, type, {buffer, g.index(0)});
  }

  void store(UOp value) {
    types.push_back(value->dtype);
    UOp buffer =
        g.make(Op::DEFINE_GLOBAL, value->dtype.element(), {}, output(), {value->lanes(), 1, 0, 0});
    UOp stored = g.make(Op::STORE, Scalar::Void, {buffer, g.index(0), value});
    sink = g.make(Op::SINK, Scalar::Void, {stored});
  }

  int64_t output() const { return static_cast<int64_t>(types.size()) - 1; }
};

Target target_for(bool native) {
  Target t = generic_cpu_target();
  t.native_float16_cast = native;
  return t;
}

bool is_half(DType t) { return t.scalar == Scalar::Float16 || t.scalar == Scalar::BFloat16; }

// Only memory, and the CASTs and BITCASTs of float16 that the header allows, still have half types.
void expect_legal(UOp sink, bool native) {
  for (UOp u : reachable({&sink, 1})) {
    bool half = is_half(u->dtype);
    for (UOp s : u->src()) half |= is_half(s->dtype);
    if (!half || u->op == Op::DEFINE_GLOBAL) continue;
    bool access = u->op == Op::LOAD || u->op == Op::STORE;
    bool value = is_half(u->dtype) || u->op != Op::LOAD;
    for (size_t i = access ? 2 : 0; i < u->nsrc; ++i) value |= is_half(u->src(i)->dtype);
    if (u->op == Op::STORE) value = is_half(u->src(2)->dtype);
    if (!value) continue;
    EXPECT_TRUE(native) << name(u->op);
    EXPECT_NE(u->dtype.scalar, Scalar::BFloat16) << name(u->op);
    bool conversion = u->op == Op::CAST || u->op == Op::BITCAST || u->is_const();
    EXPECT_TRUE(access || conversion) << name(u->op);
    EXPECT_FALSE(u->op == Op::CAST && u->dtype.scalar != Scalar::Float32 &&
                 u->src(0)->dtype.scalar != Scalar::Float32);
  }
}

bool is_nan(DType t, uint64_t bits) {
  return t.is_float() && std::isnan(bits_float(from_storage(t.element(), bits)));
}

// Distance in representable numbers of one sign.
int64_t distance(uint64_t a, uint64_t b) {
  return std::abs(static_cast<int64_t>(a) - static_cast<int64_t>(b));
}

// Runs the kernel and its legalized forms on `rounds` inputs and compares. `fill` gives an input's
// bits.
template <class Fill>
void compare(Kernel& k, size_t rounds, Fill fill, int64_t tolerance = 0) {
  for (bool native : {true, false}) {
    UOp legal = legalize_floats(k.g, k.sink, target_for(native));
    expect_legal(legal, native);
    Executor before(k.sink), after(legal);
    Memory memory;
    for (size_t i = 0; i < k.types.size(); ++i)
      memory[static_cast<int64_t>(i)].resize(k.types[i].lanes);
    DType type = k.types.back();
    for (size_t round = 0; round < rounds; ++round) {
      for (int64_t i = 0; i < k.output(); ++i)
        for (uint64_t& bits : memory[i]) bits = fill(k.types[static_cast<size_t>(i)], round);
      before.run(memory);
      std::vector<uint64_t> expected = memory[k.output()];
      after.run(memory);
      const std::vector<uint64_t>& actual = memory[k.output()];
      for (size_t i = 0; i < actual.size(); ++i) {
        if (is_nan(type, expected[i]) && is_nan(type, actual[i])) continue;
        ASSERT_LE(distance(actual[i], expected[i]), tolerance)
            << std::hex << "input " << memory[0][i % memory[0].size()] << " gives " << actual[i]
            << " instead of " << expected[i] << (native ? " native" : "");
      }
    }
  }
}

std::mt19937_64& generator() {
  static std::mt19937_64 random(7);
  return random;
}

// Any bits; often small integers, and numbers close to where a half type breaks a tie.
uint64_t any_value(DType type, size_t) {
  std::mt19937_64& random = generator();
  uint64_t bits = random();
  DType t = type.element();
  uint64_t mask = t.bits() == 64 ? ~uint64_t{0} : (uint64_t{1} << t.bits()) - 1;
  if (t.is_bool()) return bits & 1;
  if (t.is_int()) {
    int drop = static_cast<int>(bits & 63) % t.bits();
    uint64_t value = (random() & mask) >> drop;
    uint64_t cleared = value & ~((uint64_t{1} << (random() % 64)) - 1);
    uint64_t near = cleared + (random() % 3 - 1);
    return (random() & 1 ? near : 0 - near) & mask;
  }
  if (is_half(t) || random() % 4 == 0) return bits & mask;
  // A half number or the middle of two, or a bit beside it.
  DType half = kHalves[random() % 2];
  double a = bits_float(from_storage(half, bits & 0xffff));
  double b = bits_float(from_storage(half, (bits + 1) & 0xffff));
  uint64_t middle = to_storage(t, float_bits(round_to(t, random() % 3 == 0 ? a : a / 2 + b / 2)));
  return (middle + (random() % 3 - 1)) & mask;
}

uint64_t each_bits(DType, size_t round) { return round & 0xffff; }

// The same, but with one NaN: its payload is nobody's promise, and would be seen as an integer.
uint64_t each_value(DType type, size_t round) {
  uint64_t bits = each_bits(type, round);
  return is_half(type) ? to_storage(type, from_storage(type, bits)) : bits;
}

constexpr Scalar kTypes[] = {Scalar::Bool,   Scalar::Int8,    Scalar::UInt8,    Scalar::Int16,
                             Scalar::UInt16, Scalar::Int32,   Scalar::UInt32,   Scalar::Int64,
                             Scalar::UInt64, Scalar::Float16, Scalar::BFloat16, Scalar::Float32,
                             Scalar::Float64};

TEST(LegalizeFloat, Unary) {
  for (Scalar half : kHalves)
    for (Op op : {Op::NEG, Op::TRUNC, Op::SQRT, Op::EXP2, Op::LOG2, Op::SIN}) {
      Kernel k;
      k.store(k.g.make(op, half, {k.input(half)}));
      // These may be off by more than the second rounding can hide.
      bool approximate = op == Op::EXP2 || op == Op::LOG2 || op == Op::SIN;
      compare(k, 1 << 16, each_bits, approximate ? 1 : 0);
    }
}

TEST(LegalizeFloat, Binary) {
  for (Scalar half : kHalves)
    for (Op op : {Op::ADD, Op::SUB, Op::MUL, Op::DIV, Op::MOD, Op::MAX, Op::CMPLT, Op::CMPEQ}) {
      Kernel k;
      DType type = is_compare(op) ? Scalar::Bool : half;
      UOp a = k.input(half), b = k.input(half);
      k.store(k.g.make(op, type, {a, b}));
      compare(k, 50000, any_value);
    }
}

TEST(LegalizeFloat, Ternary) {
  for (Scalar half : kHalves) {
    Kernel mulacc, where;
    UOp a = mulacc.input(half), b = mulacc.input(half), c = mulacc.input(half);
    mulacc.store(mulacc.g.make(Op::MULACC, half, {a, b, c}));
    compare(mulacc, 50000, any_value);
    UOp g = where.input(Scalar::Bool), x = where.input(half), y = where.input(half);
    where.store(where.g.make(Op::WHERE, half, {g, x, y}));
    compare(where, 5000, any_value);
  }
}

TEST(LegalizeFloat, Casts) {
  for (Scalar half : kHalves)
    for (Scalar other : kTypes) {
      Kernel to, from;
      to.store(to.g.make(Op::CAST, half, {to.input(other)}));
      compare(to, 100000, any_value);
      from.store(from.g.make(Op::CAST, other, {from.input(half)}));
      compare(from, 1 << 16, each_bits);
    }
}

TEST(LegalizeFloat, IndexIsCastByItsBounds) {
  for (Scalar half : kHalves)
    for (int64_t limit : {int64_t{200}, int64_t{70000}, int64_t{1} << 40}) {
      Kernel k;
      // Not an Index that simplification would see through: what stands in for one is a CAST.
      UOp index =
          k.g.make(Op::FLOORMOD, Scalar::Index,
                   {k.g.make(Op::CAST, Scalar::Index, {k.input(Scalar::Int64)}), k.g.index(limit)});
      k.store(k.g.make(Op::CAST, half, {index}));
      compare(k, 20000, any_value);
    }
}

TEST(LegalizeFloat, Bitcasts) {
  for (Scalar half : kHalves)
    for (Scalar other : {Scalar::Int16, Scalar::UInt16, Scalar::Float16, Scalar::BFloat16}) {
      Kernel to, from;
      to.store(to.g.make(Op::BITCAST, half, {to.input(other)}));
      compare(to, 1 << 16, each_value);
      from.store(from.g.make(Op::BITCAST, other, {from.input(half)}));
      compare(from, 1 << 16, each_value);
    }
}

TEST(LegalizeFloat, RoundsFloat32AtEveryStep) {
  for (Scalar half : kHalves) {
    Kernel k;
    UOp a = k.input(Scalar::Float32), b = k.input(half);
    UOp narrow = k.g.make(Op::CAST, half, {a});
    UOp sum = k.g.make(Op::ADD, half, {k.g.make(Op::MUL, half, {narrow, b}), narrow});
    k.store(k.g.make(Op::CAST, Scalar::Float32, {k.g.make(Op::DIV, half, {sum, b})}));
    compare(k, 50000, any_value);
  }
}

TEST(LegalizeFloat, GatedVectors) {
  for (Scalar half : kHalves) {
    Kernel k;
    DType type(half, 4);
    UOp x = k.input(type), g = k.input(DType(Scalar::Bool, 4));
    int64_t bits[4];
    for (int64_t i = 0; i < 4; ++i)
      bits[i] = float_bits(round_to(half, 0.1 * static_cast<double>(i)));
    UOp list = k.g.make(Op::VCONST, type, {}, 0, std::span<const int64_t>(bits));
    for (UOp alternative : {k.g.constant_float(type, 0.3), list}) {
      UOp y = k.g.make(Op::LOAD, type, {x->src(0), k.g.index(0), g, alternative});
      UOp turned = k.g.make(Op::GEP, type, {x}, 0, {2, 3, 0, 1});
      UOp first = k.g.make(Op::GEP, half, {turned}, 0, {0});
      UOp spread = k.g.make(Op::VECTORIZE, type, {first});
      UOp value = k.g.make(Op::MUL, type, {k.g.make(Op::ADD, type, {y, turned}), spread});
      k.types.resize(2);
      k.store(value);
      UOp store = k.sink->src(0);
      UOp gated = k.g.make(Op::STORE, Scalar::Void, {store->src(0), store->src(1), value, g});
      k.sink = k.g.make(Op::SINK, Scalar::Void, {gated});
      compare(k, 5000, any_value);
    }
  }
}

TEST(LegalizeFloat, ReduceOfMaxBecomesFloat32) {
  for (Scalar half : kHalves) {
    Kernel k;
    UOp range = k.g.make(Op::RANGE, Scalar::Index, {k.g.index(8)}, 0, {0});
    UOp x = k.input(half);
    k.store(k.g.make(Op::REDUCE, half, {x, range}, static_cast<int64_t>(Op::MAX), {1}));
    UOp legal = legalize_floats(k.g, k.sink, target_for(true));
    expect_legal(legal, true);
    bool found = false;
    for (UOp u : reachable({&legal, 1}))
      found |= u->op == Op::REDUCE && u->dtype.scalar == Scalar::Float32 &&
               u->arg == static_cast<int64_t>(Op::MAX) && u->src(1) == range;
    EXPECT_TRUE(found);
  }
}

size_t alu_count(UOp sink) {
  size_t n = 0;
  for (UOp u : reachable({&sink, 1})) n += is_alu(u->op);
  return n;
}

TEST(LegalizeFloat, CopiesAndExactOpsAreNotRounded) {
  for (Scalar half : kHalves) {
    Kernel k;
    UOp x = k.input(half);
    UOp wide = k.g.make(Op::CAST, Scalar::Float32, {k.g.make(Op::NEG, half, {x})});
    k.store(k.g.make(Op::CAST, half, {wide}));
    // The conversion from and to memory and the NEG.
    EXPECT_LE(alu_count(legalize_floats(k.g, k.sink, target_for(true))),
              half == Scalar::Float16 ? 3 : 7);
    Kernel bytes;
    UOp narrow = bytes.g.make(Op::CAST, half, {bytes.input(Scalar::UInt8)});
    bytes.store(bytes.g.make(Op::CAST, Scalar::Float32, {narrow}));
    EXPECT_EQ(alu_count(legalize_floats(bytes.g, bytes.sink, target_for(false))), 1);
  }
}

TEST(LegalizeFloat, WithoutHalfNothingChanges) {
  Kernel k;
  UOp x = k.input(Scalar::Float32);
  k.store(k.g.make(Op::SIN, Scalar::Float32, {x}));
  size_t nodes = k.g.size();
  EXPECT_EQ(legalize_floats(k.g, k.sink, target_for(true)), k.sink);
  EXPECT_EQ(k.g.size(), nodes);
}

// Random chains over all types.
TEST(LegalizeFloat, RandomExpressions) {
  std::mt19937_64& random = generator();
  auto pick = [&](const auto& list) { return list[random() % std::size(list)]; };
  constexpr Op kBinary[] = {Op::ADD, Op::SUB, Op::MUL, Op::DIV, Op::MAX};
  for (int round = 0; round < 200; ++round) {
    Kernel k;
    std::vector<UOp> values;
    for (int i = 0; i < 3; ++i) values.push_back(k.input(pick(kTypes)));
    values.push_back(
        k.g.constant_float(pick(kHalves), 1.0 / static_cast<double>(random() % 50 + 1)));
    for (int i = 0; i < 12; ++i) {
      DType t = random() % 3 ? pick(kHalves) : pick(kTypes);
      auto cast = [&](UOp u) { return u->dtype == t ? u : k.g.make(Op::CAST, t, {u}); };
      UOp a = cast(pick(values)), b = cast(pick(values));
      UOp made = k.g.make(pick(kBinary), t, {a, b});
      if (random() % 5 == 0)
        made = k.g.make(Op::WHERE, t, {k.g.make(Op::CMPLT, Scalar::Bool, {a, b}), made, a});
      if (random() % 5 == 0 && !t.is_bool()) made = k.g.make(Op::NEG, t, {made});
      values.push_back(made);
    }
    k.store(values.back());
    compare(k, 100, any_value);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace quern
