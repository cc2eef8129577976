#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quern/devices/cpu/cpu.h"
#include "tests/devices/cpu_kernel.h"

// Memory accesses, lanes and control flow, run on this processor.
namespace quern {
namespace {

using test::Data;
using test::Kernel;

const DType kF32{Scalar::Float32};
const DType kI32{Scalar::Int32};

Device& host() {
  static std::shared_ptr<Device> device = make_cpu_device();
  return *device;
}

TEST(CpuKernels, VectorTailUnderAMask) {
  constexpr int64_t kSize = 19;
  DType v(Scalar::Float32, 16), vi(Scalar::Int32, 16);
  Kernel k;
  UOp out = k.output(kF32, kSize), in = k.input(kF32, kSize);
  UOp at = k(Op::MUL, k.task(2), k.number(16));
  UOp lane = k.add(Op::VCONST, vi, {}, 0, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  UOp index = k(Op::ADD, k.add(Op::VECTORIZE, vi, {at}), lane);
  UOp gate = k(Op::CMPLT, index, k.constant(vi, kSize));
  UOp x = k.load(in, at, gate, k.real(v, 5));
  k.store(out, at, k(Op::ADD, x, x), gate);
  Data data[] = {Data::zeros(kF32, kSize), Data::zeros(kF32, kSize)};
  for (size_t i = 0; i < kSize; ++i) data[1].lanes[i] = float_bits(static_cast<double>(i));
  test::run(host(), k, data);
  for (size_t i = 0; i < kSize; ++i)
    EXPECT_EQ(bits_float(data[0].lanes[i]), 2 * static_cast<double>(i));
}

// Every type, with and without lanes: what a gate excludes is neither read nor written.
TEST(CpuKernels, GatedAccesses) {
  for (Scalar scalar : {Scalar::Bool, Scalar::Int8, Scalar::UInt16, Scalar::Int32, Scalar::Int64,
                        Scalar::Float16, Scalar::Float32, Scalar::Float64}) {
    for (int lanes : {1, 3, 8}) {
      DType t(scalar), v(scalar, lanes);
      Kernel k;
      UOp out = k.output(t, 32), in = k.input(t, 16), flags = k.input(Scalar::Bool, 2);
      UOp i = k.range(2);
      UOp gate = k.load(flags, i);
      // Far outside where the flag is false.
      UOp far =
          k(Op::MUL, k.add(Op::CAST, kI32, {k(Op::CMPEQ, i, k.number(1))}), k.number(1 << 28));
      UOp one = k.constant(v, t.is_float() ? float_bits(1) : 1);
      UOp x = k.load(in, far, gate, one);
      k.store(out, k(Op::ADD, far, k.number(8)), x, gate);
      k.store(out, k(Op::MUL, i, k.number(16)), x);
      k.end(i);
      Data data[] = {Data::zeros(t, 32), Data::zeros(t, 16), {Scalar::Bool, {1, 0}}};
      test::run(host(), k, data);
      for (size_t e = 0; e < 32; ++e) {
        bool alternative = e >= 16 && e < 16 + static_cast<size_t>(lanes);
        EXPECT_EQ(data[0].lanes[e], alternative ? one->arg : 0) << to_string(v) << " at " << e;
      }
    }
  }
}

TEST(CpuKernels, LanesMove) {
  DType t2(Scalar::Int16, 2), t3(Scalar::Int16, 3), t4(Scalar::Int16, 4), t8(Scalar::Int16, 8);
  Kernel k;
  UOp out = k.output(Scalar::Int16, 64), in = k.input(Scalar::Int16, 8);
  UOp a = k.load(in, k.number(0), 8), s = k.load(in, k.number(5));
  UOp low = k.add(Op::GEP, t3, {a}, 0, {2, 1, 0});
  UOp pair = k.add(Op::GEP, t2, {a}, 0, {7, 7});
  UOp one = k.add(Op::GEP, Scalar::Int16, {a}, 0, {4});
  int64_t at = 0;
  auto store = [&](UOp v) { k.store(out, k.number(8 * at++), v); };
  store(k.add(Op::VECTORIZE, t8, {low, pair, low}));
  store(k.add(Op::VECTORIZE, t4, {s, one, k.constant(Scalar::Int16, 9), s}));
  store(k.add(Op::VECTORIZE, t4, {s}));
  store(k.add(Op::VECTORIZE, t4, {pair, one, s}));
  store(k.add(Op::GEP, t4, {s}, 0, {0, 0, 0, 0}));
  store(k.add(Op::VECTORIZE, t2, {k.constant(Scalar::Int16, 3), k.constant(Scalar::Int16, 4)}));
  Data data[] = {Data::zeros(Scalar::Int16, 64), {Scalar::Int16, {10, 11, 12, 13, 14, 15, 16, 17}}};
  test::run(host(), k, data);
  using Lanes = std::vector<int64_t>;
  auto row = [&](int i, int n) {
    auto begin = data[0].lanes.begin() + 8 * i;
    return Lanes(begin, begin + n);
  };
  EXPECT_EQ(row(0, 8), (Lanes{12, 11, 10, 17, 17, 12, 11, 10}));
  EXPECT_EQ(row(1, 4), (Lanes{15, 14, 9, 15}));
  EXPECT_EQ(row(2, 4), (Lanes{15, 15, 15, 15}));
  EXPECT_EQ(row(3, 4), (Lanes{17, 17, 14, 15}));
  EXPECT_EQ(row(4, 4), (Lanes{15, 15, 15, 15}));
  EXPECT_EQ(row(5, 2), (Lanes{3, 4}));
}

// Sum over a nest, its maximum over the inner loop, and a loop that runs `times` times.
TEST(CpuKernels, AccumulatorsInNestsAndZeroTripLoops) {
  for (int32_t times : {0, 1, 3}) {
    Kernel k;
    UOp out = k.output(kI32, 3), in = k.input(kI32, 12);
    UOp var = k.add(Op::DEFINE_VAR, kI32, {}, 0, {0, 3});
    UOp sum = k.accumulator(k.number(0)), last = k.accumulator(k.number(-7));
    UOp outer = k.range(var);
    UOp most = k.accumulator(k.number(INT32_MIN));
    UOp inner = k.range(4);
    UOp x = k.load(in, k(Op::ADD, k(Op::MUL, outer, k.number(4)), inner));
    UOp sum_after = k.assign(sum, k(Op::ADD, sum, x));
    UOp most_after = k.assign(most, k(Op::MAX, most, x));
    k.end(inner);
    UOp last_after = k.assign(last, k(Op::ADD, most_after, k.number(0)));
    k.end(outer);
    k.store(out, k.number(0), sum_after);
    k.store(out, k.number(1), last_after);
    k.store(out, k.number(2), k(Op::MUL, sum_after, last_after));
    Data data[] = {Data::zeros(kI32, 3), {kI32, {1, 5, 2, 3, 4, 1, 1, 9, 8, 2, 1, 1}}};
    test::run(host(), k, data, std::vector<int32_t>{times});
    int64_t sums[] = {0, 11, 26, 38}, lasts[] = {-7, 5, 9, 8};
    EXPECT_EQ(data[0].lanes[0], sums[times]);
    EXPECT_EQ(data[0].lanes[1], lasts[times]);
    EXPECT_EQ(data[0].lanes[2], sums[times] * lasts[times]);
  }
}

// An accumulator that does not depend on the task may stand before it, and still starts anew.
TEST(CpuKernels, AccumulatorsBeforeTheTask) {
  Kernel k;
  UOp out = k.output(kI32, 4);
  UOp acc = k.accumulator(k.number(100));
  UOp task = k.task(4);
  UOp r = k.range(k(Op::ADD, task, k.number(1)));
  UOp after = k.assign(acc, k(Op::ADD, acc, r));
  k.end(r);
  k.store(out, task, after);
  Data data[] = {Data::zeros(kI32, 4)};
  test::run(host(), k, data);
  EXPECT_EQ(data[0].lanes, (std::vector<int64_t>{100, 101, 103, 106}));
}

TEST(CpuKernels, AssignmentsUnderIf) {
  Kernel k;
  UOp out = k.output(kI32, 2), flags = k.input(Scalar::Bool, 5);
  UOp acc = k.accumulator(k.number(0));
  UOp r = k.range(5);
  UOp flag = k.add(Op::IF, Scalar::Void, {k.load(flags, r)});
  k.store(out, k.number(1), r);
  UOp after = k.assign(acc, k(Op::ADD, acc, k.number(1)));
  k.end(flag);
  k.end(r);
  k.store(out, k.number(0), after);
  Data data[] = {Data::zeros(kI32, 2), {Scalar::Bool, {1, 0, 1, 1, 0}}};
  test::run(host(), k, data);
  EXPECT_EQ(data[0].lanes, (std::vector<int64_t>{3, 3}));
}

// An address of one scope cannot serve another that runs without it.
TEST(CpuKernels, TheSameAddressInTwoScopes) {
  Kernel k;
  UOp out = k.output(kI32, 2), in = k.input(kI32, 8), flags = k.input(Scalar::Bool, 2);
  UOp at = k.add(Op::DEFINE_VAR, kI32, {}, 0, {0, 4});
  for (int i = 0; i < 2; ++i) {
    UOp flag = k.add(Op::IF, Scalar::Void, {k.load(flags, k.number(i))});
    k.store(out, k.number(i), k.load(in, k(Op::ADD, at, k.number(i))));
    k.end(flag);
  }
  Data data[] = {Data::zeros(kI32, 2), {kI32, {1, 2, 3, 4, 5, 6, 7, 8}}, {Scalar::Bool, {0, 1}}};
  test::run(host(), k, data, std::vector<int32_t>{3});
  EXPECT_EQ(data[0].lanes, (std::vector<int64_t>{0, 5}));
}

TEST(CpuKernels, Scratch) {
  DType v(Scalar::Float32, 8);
  Kernel k;
  UOp out = k.output(kF32, 8), in = k.input(kF32, 8);
  UOp tile = k.add(Op::DEFINE_LOCAL, kF32, {}, 0, {8});
  UOp r = k.range(8);
  k.store(tile, k(Op::SUB, k.number(7), r), k.load(in, r));
  k.end(r);
  k.store(out, k.number(0), k.load(tile, k.number(0), 8));
  Data data[] = {Data::zeros(kF32, 8), Data::reals(kF32, {1, 2, 3, 4, 5, 6, 7, 8})};
  test::run(host(), k, data);
  EXPECT_EQ(data[0].reals(), (std::vector<double>{8, 7, 6, 5, 4, 3, 2, 1}));
}

TEST(CpuKernels, AnyByteButZeroIsTrue) {
  Kernel k;
  UOp out = k.output(Scalar::Bool, 4), in = k.input(Scalar::Bool, 4);
  k.store(out, k.number(0), k.load(in, k.number(0), 4));
  uint8_t bytes[] = {0, 1, 2, 255}, result[4] = {9, 9, 9, 9};
  MemoryRef refs[] = {{host().wrap(result, 4), 0}, {host().wrap(bytes, 4), 0}};
  LaunchArgs args;
  args.buffers = refs;
  test::build(host(), k.program(host().target()))->launch(args);
  EXPECT_EQ(std::vector<int>(result, result + 4), (std::vector<int>{0, 1, 1, 1}));
}

}  // namespace
}  // namespace quern
