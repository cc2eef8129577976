#include "quern/codegen/lower/transcendental.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "quern/codegen/uop/dtype.h"

namespace quern {
namespace {

// Runs a graph of one argument, the only LOAD, on blocks of lanes: each op is decoded once a block,
// where eval() would be called for every lane.
class BlockProgram {
 public:
  static constexpr size_t kBlock = 512;

  explicit BlockProgram(UOp result) : nodes_(reachable({&result, 1})) {
    std::vector<size_t> slot(result->id + 1);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      slot[nodes_[i]->id] = i;
      std::vector<size_t> src;
      for (UOp s : nodes_[i]->src()) src.push_back(slot[s->id]);
      src_.push_back(src);
    }
    values_.resize(nodes_.size() * kBlock);
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i]->is_const())
        for (size_t k = 0; k < kBlock; ++k) at(i)[k] = to_storage(nodes_[i]->dtype, nodes_[i]->arg);
  }

  // `in` and `out` are the bits of kBlock arguments and results.
  void run(const uint64_t* in, uint64_t* out) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      UOp u = nodes_[i];
      if (u->op == Op::LOAD) std::memcpy(at(i), in, kBlock * sizeof *in);
      if (is_alu(u->op)) execute(u, i);
    }
    std::memcpy(out, at(nodes_.size() - 1), kBlock * sizeof *out);
  }

  size_t alu_count() const {
    return static_cast<size_t>(std::ranges::count_if(nodes_, [](UOp u) { return is_alu(u->op); }));
  }
  std::span<const UOp> nodes() const { return nodes_; }

 private:
  uint64_t* at(size_t node) { return &values_[node * kBlock]; }

  template <class T>
  static T read(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  template <class T>
  static uint64_t write(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }

  // Calls f with a value of the scalar's C++ type.
  template <class F>
  static void visit(Scalar scalar, F f) {
    switch (scalar) {
      case Scalar::Bool: return f(false);
      case Scalar::Int32: return f(int32_t{});
      case Scalar::UInt32: return f(uint32_t{});
      case Scalar::Int64: return f(int64_t{});
      case Scalar::UInt64: return f(uint64_t{});
      case Scalar::Float32: return f(float{});
      case Scalar::Float64: return f(double{});
      default: throw std::logic_error("unexpected type " + to_string(scalar));
    }
  }

  template <class F>
  void map(size_t i, F f) {
    const uint64_t* a = at(src_[i][0]);
    const uint64_t* b = at(src_[i].size() > 1 ? src_[i][1] : src_[i][0]);
    uint64_t* out = at(i);
    for (size_t k = 0; k < kBlock; ++k) out[k] = f(a[k], b[k]);
  }

  template <class T, class F>
  void map_as(size_t i, F f) {
    map(i, [f](uint64_t a, uint64_t b) { return write(f(read<T>(a), read<T>(b))); });
  }

  void execute(UOp u, size_t i) {
    if (u->op == Op::WHERE) {
      const uint64_t *c = at(src_[i][0]), *a = at(src_[i][1]), *b = at(src_[i][2]);
      for (size_t k = 0; k < kBlock; ++k) at(i)[k] = c[k] ? a[k] : b[k];
    } else if (u->op == Op::BITCAST) {
      map(i, [](uint64_t a, uint64_t) { return a; });
    } else if (u->op == Op::CAST) {
      visit(u->src(0)->dtype.scalar, [&](auto from) {
        visit(u->dtype.scalar, [&](auto to) { cast<decltype(from), decltype(to)>(u, i); });
      });
    } else {
      visit(u->src(0)->dtype.scalar, [&](auto type) {
        using T = decltype(type);
        if constexpr (std::is_same_v<T, bool>) throw std::logic_error("unexpected bool op");
        else alu<T>(u, i);
      });
    }
  }

  template <class From, class To>
  void cast(UOp u, size_t i) {
    if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
      map_as<From>(i, [&](From a, From) {  // saturates
        int64_t lane = float_bits(static_cast<double>(a));
        return static_cast<To>(eval(Op::CAST, u->src(0)->dtype, u->dtype, {&lane, 1}));
      });
    } else {
      map_as<From>(i, [](From a, From) { return static_cast<To>(a); });
    }
  }

  // Integers wrap, which signed ones do not by themselves.
  template <class T, class F>
  static T wrapping(F&& f, T a, T b) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
      return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
    } else {
      return static_cast<T>(f(a, b));
    }
  }

  template <class T>
  void alu(UOp u, size_t i) {
    switch (u->op) {
      case Op::ADD:
        return map_as<T>(
            i, [](T a, T b) { return wrapping<T>([](auto x, auto y) { return x + y; }, a, b); });
      case Op::SUB:
        return map_as<T>(
            i, [](T a, T b) { return wrapping<T>([](auto x, auto y) { return x - y; }, a, b); });
      case Op::MUL:
        return map_as<T>(
            i, [](T a, T b) { return wrapping<T>([](auto x, auto y) { return x * y; }, a, b); });
      case Op::NEG:
        return map_as<T>(
            i, [](T a, T) { return wrapping<T>([](auto x, auto y) { return y - x; }, a, T{}); });
      case Op::CMPLT: return map_as<T>(i, [](T a, T b) { return a < b; });
      case Op::CMPEQ: return map_as<T>(i, [](T a, T b) { return a == b; });
      default: break;
    }
    if constexpr (std::is_floating_point_v<T>) {
      if (u->op == Op::DIV) return map_as<T>(i, [](T a, T b) { return a / b; });
    } else {
      switch (u->op) {
        case Op::AND: return map_as<T>(i, [](T a, T b) { return static_cast<T>(a & b); });
        case Op::OR: return map_as<T>(i, [](T a, T b) { return static_cast<T>(a | b); });
        case Op::XOR: return map_as<T>(i, [](T a, T b) { return static_cast<T>(a ^ b); });
        case Op::SHL: return map_as<T>(i, [](T a, T b) { return static_cast<T>(a << b); });
        case Op::SHR: return map_as<T>(i, [](T a, T b) { return static_cast<T>(a >> b); });
        default: break;
      }
    }
    throw std::logic_error("unexpected op " + std::string(name(u->op)));
  }

  std::vector<UOp> nodes_;
  std::vector<std::vector<size_t>> src_;
  std::vector<uint64_t> values_;
};

// `op` of a loaded value, decomposed.
BlockProgram program_for(Graph& g, Op op, DType type) {
  UOp buffer = g.make(Op::DEFINE_GLOBAL, type, {}, 0, {16, 0, 0, 0});
  UOp x = g.make(Op::LOAD, type, {buffer, g.index(0)});
  return BlockProgram(decompose_transcendentals(g, g.make(op, type, {x}), generic_cpu_target()));
}

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
// What is more precise than T.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;

template <class T>
constexpr Scalar kScalar = sizeof(T) == 4 ? Scalar::Float32 : Scalar::Float64;

template <class T>
std::vector<T> run(Op op, const std::vector<T>& x) {
  Graph g;
  BlockProgram program = program_for(g, op, kScalar<T>);
  std::vector<T> out(x.size());
  std::vector<uint64_t> in(BlockProgram::kBlock), result(BlockProgram::kBlock);
  for (size_t first = 0; first < x.size(); first += in.size()) {
    size_t n = std::min(in.size(), x.size() - first);
    for (size_t i = 0; i < n; ++i) in[i] = std::bit_cast<Bits<T>>(x[first + i]);
    program.run(in.data(), result.data());
    for (size_t i = 0; i < n; ++i)
      out[first + i] = std::bit_cast<T>(static_cast<Bits<T>>(result[i]));
  }
  return out;
}

// The error in units of the last place of the exact result.
template <class T>
double ulps(T actual, Wide<T> exact) {
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : INFINITY;
  T rounded = static_cast<T>(exact);
  if (actual == rounded) return 0;
  if (std::isinf(rounded) != std::isinf(actual) || std::isnan(actual)) return INFINITY;
  int exponent = std::max(std::ilogb(exact), std::numeric_limits<T>::min_exponent - 1);
  Wide<T> unit = std::ldexp(Wide<T>{1}, exponent - (std::numeric_limits<T>::digits - 1));
  return static_cast<double>(std::abs((static_cast<Wide<T>>(actual) - exact) / unit));
}

template <class T>
Wide<T> exact_value(Op op, T x) {
  Wide<T> wide = x;
  return op == Op::EXP2 ? std::exp2(wide) : op == Op::LOG2 ? std::log2(wide) : std::sin(wide);
}

// The worst error over the arguments; also that |sin| <= 1.
template <class T>
double worst(Op op, const std::vector<T>& x) {
  std::vector<T> y = run(op, x);
  double max = 0;
  T at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double error = ulps<T>(y[i], exact_value(op, x[i]));
    EXPECT_FALSE(op == Op::SIN && std::abs(y[i]) > 1) << x[i];
    if (!(error <= max)) max = error, at = x[i];
  }
  std::string key = std::string(name(op)) + (sizeof(T) == 4 ? "_float32" : "_float64");
  ::testing::Test::RecordProperty(key + "_ulp", std::to_string(max));
  std::printf("%s: worst error %.3f ulp at %a of %zu\n", key.c_str(), max, static_cast<double>(at),
              x.size());
  return max;
}

// Random bits, and for each exponent and sign the mantissas at either end.
template <class T>
std::vector<T> samples(size_t n) {
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  constexpr int kExponents = sizeof(T) == 4 ? 256 : 2048;
  std::mt19937_64 random(1);
  std::vector<T> x;
  for (size_t i = 0; i < n; ++i) x.push_back(std::bit_cast<T>(static_cast<Bits<T>>(random())));
  for (int e = 0; e < 2 * kExponents; ++e)
    for (Bits<T> low : {0, 1, 2, 3, -1, -2})
      x.push_back(
          std::bit_cast<T>(static_cast<Bits<T>>((static_cast<Bits<T>>(e) << kMantissa) + low)));
  return x;
}

template <class T>
std::vector<T> uniform(size_t n, double low, double high) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> distribution(low, high);
  std::vector<T> x;
  for (size_t i = 0; i < n; ++i) x.push_back(static_cast<T>(distribution(random)));
  return x;
}

constexpr size_t kMany = size_t{1} << 20;

TEST(Transcendental, Exp2Float32) {
  EXPECT_LE(worst(Op::EXP2, samples<float>(kMany)), 2);
  EXPECT_LE(worst(Op::EXP2, uniform<float>(kMany, -151, 129)), 2);
  EXPECT_LE(worst(Op::EXP2, uniform<float>(kMany / 4, -1, 1)), 2);
}

TEST(Transcendental, Log2Float32) {
  EXPECT_LE(worst(Op::LOG2, samples<float>(kMany)), 2);
  EXPECT_LE(worst(Op::LOG2, uniform<float>(kMany, 0.5, 2)), 2);
}

TEST(Transcendental, SinFloat32) {
  EXPECT_LE(worst(Op::SIN, samples<float>(kMany)), 2);
  EXPECT_LE(worst(Op::SIN, uniform<float>(kMany, -10, 10)), 2);
  EXPECT_LE(worst(Op::SIN, uniform<float>(kMany / 4, -1e5, 1e5)), 2);
}

TEST(Transcendental, Exp2Float64) {
  EXPECT_LE(worst(Op::EXP2, samples<double>(kMany / 4)), 3);
  EXPECT_LE(worst(Op::EXP2, uniform<double>(kMany / 4, -1077, 1025)), 3);
  EXPECT_LE(worst(Op::EXP2, uniform<double>(kMany / 4, -1, 1)), 3);
}

TEST(Transcendental, Log2Float64) {
  EXPECT_LE(worst(Op::LOG2, samples<double>(kMany / 4)), 3);
  EXPECT_LE(worst(Op::LOG2, uniform<double>(kMany / 4, 0.5, 2)), 3);
}

TEST(Transcendental, SinFloat64) {
  EXPECT_LE(worst(Op::SIN, samples<double>(kMany / 4)), 3);
  EXPECT_LE(worst(Op::SIN, uniform<double>(kMany / 4, -10, 10)), 3);
  EXPECT_LE(worst(Op::SIN, uniform<double>(kMany / 16, -1e10, 1e10)), 3);
}

// Multiples of pi/2 and their neighbours, and the numbers closest to a multiple of all.
TEST(Transcendental, SinNearMultiplesOfHalfPi) {
  std::vector<float> narrow{std::ldexp(16367173.0f, 72), std::ldexp(-16367173.0f, 72)};
  std::vector<double> wide{std::ldexp(6381956970095103.0, 797),
                           std::ldexp(-6381956970095103.0, 797)};
  for (int k = 1; k < 100000; ++k) {
    auto x = static_cast<float>(k * (M_PI / 2));
    for (float y : {x, std::nextafter(x, 0.0f), std::nextafter(x, 1e9f)}) narrow.push_back(y);
    double z = k * (M_PI / 2);
    for (double y : {z, std::nextafter(z, 0.0), std::nextafter(z, 1e9)}) wide.push_back(y);
  }
  EXPECT_LE(worst(Op::SIN, narrow), 2);
  EXPECT_LE(worst(Op::SIN, wide), 3);
}

TEST(Transcendental, SinOfLargeArguments) {
  std::vector<float> y = run<float>(Op::SIN, {1e5f, 1e6f, 6.7e8f, 1e10f, 3.4e38f, 1e-7f});
  const float expected[] = {0.0357488f, -0.3499935f, -0.7221810f, -0.4875061f, -0.2440849f, 1e-7f};
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 6e-8f) << i;
}

template <class T>
void check_special_values() {
  constexpr T kInf = std::numeric_limits<T>::infinity(), kNan = std::numeric_limits<T>::quiet_NaN();
  constexpr T kLeast = std::numeric_limits<T>::denorm_min(), kMost = std::numeric_limits<T>::max();
  constexpr int kEmin = std::numeric_limits<T>::min_exponent - std::numeric_limits<T>::digits;
  constexpr int kEmax = std::numeric_limits<T>::max_exponent;
  auto check = [](Op op, std::vector<T> x, std::vector<T> expected) {
    std::vector<T> y = run(op, x);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(expected[i])) {
        EXPECT_TRUE(std::isnan(y[i])) << name(op) << x[i];
      } else {
        EXPECT_EQ(std::bit_cast<Bits<T>>(y[i]), std::bit_cast<Bits<T>>(expected[i]))
            << name(op) << " " << x[i] << " gives " << y[i];
      }
    }
  };
  check(Op::EXP2, {kInf, -kInf, kNan, -kNan, 0, -T{0}, kLeast, -kLeast, kMost, -kMost, kEmin - 2},
        {kInf, 0, kNan, kNan, 1, 1, 1, 1, kInf, 0, 0});
  check(Op::LOG2, {kInf, -kInf, kNan, -kNan, 0, -T{0}, -1, -kLeast, 1, kLeast},
        {kInf, kNan, kNan, kNan, -kInf, -kInf, kNan, kNan, 0, kEmin});
  check(Op::SIN, {kInf, -kInf, kNan, 0, -T{0}, kLeast, -kLeast},
        {kNan, kNan, kNan, 0, -T{0}, kLeast, -kLeast});
  std::vector<T> integers, powers;
  for (int e = kEmin; e < kEmax; ++e) {
    integers.push_back(static_cast<T>(e));
    powers.push_back(std::ldexp(T{1}, e));
  }
  check(Op::EXP2, integers, powers);
  check(Op::LOG2, powers, integers);
}

TEST(Transcendental, SpecialValuesFloat32) { check_special_values<float>(); }
TEST(Transcendental, SpecialValuesFloat64) { check_special_values<double>(); }

// Only what every backend has, in the types asked for, and not more of it than it should be.
TEST(Transcendental, Uops) {
  struct Case {
    Op op;
    Scalar type;
    size_t most;
  };
  for (Case c : {Case{Op::EXP2, Scalar::Float32, 28},
                 {Op::EXP2, Scalar::Float64, 38},
                 {Op::LOG2, Scalar::Float32, 42},
                 {Op::LOG2, Scalar::Float64, 58},
                 {Op::SIN, Scalar::Float32, 120},
                 {Op::SIN, Scalar::Float64, 260}}) {
    Graph g;
    BlockProgram program = program_for(g, c.op, c.type);
    std::printf("%s %s: %zu uops\n", std::string(name(c.op)).c_str(), to_string(c.type).c_str(),
                program.alu_count());
    EXPECT_LE(program.alu_count(), c.most) << name(c.op) << to_string(c.type);
    for (UOp u : program.nodes()) {
      EXPECT_FALSE(c.type == Scalar::Float32 && u->dtype.scalar == Scalar::Float64);
      EXPECT_NE(u->op, Op::MULACC);
      EXPECT_TRUE((u->op != Op::SHL && u->op != Op::SHR) || u->src(1)->is_const());
    }
  }
}

TEST(Transcendental, KeepsLanesAndOtherGraphs) {
  Graph g;
  UOp buffer = g.make(Op::DEFINE_GLOBAL, Scalar::Float32, {}, 0, {16, 1, 0, 0});
  UOp x = g.make(Op::LOAD, DType(Scalar::Float32, 8), {buffer, g.index(0)});
  UOp plain = g.make(Op::SQRT, x->dtype, {x});
  EXPECT_EQ(decompose_transcendentals(g, plain, generic_cpu_target()), plain);
  UOp sin = decompose_transcendentals(g, g.make(Op::SIN, x->dtype, {plain}), generic_cpu_target());
  EXPECT_EQ(sin->dtype, x->dtype);
  for (UOp u : reachable({&sin, 1})) EXPECT_NE(u->op, Op::SIN);
}

}  // namespace
}  // namespace quern
