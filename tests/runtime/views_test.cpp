// Moved, masked and symbolic inputs, and schedules at their edges.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include <gtest/gtest.h>

#include "quern/codegen/ast/array.h"
#include "quern/codegen/error.h"
#include "quern/codegen/generate.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/codegen/uop/eval.h"
#include "quern/runtime/devices.h"
#include "quern/runtime/kernel_file.h"
#include "tests/kernel_check.h"

namespace quern {
namespace {

using namespace test;

Values counting(DType dtype, size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return dtype.is_float() ? reals(dtype, values)
                          : ints(dtype, std::vector<int64_t>(values.begin(), values.end()));
}

View view(Shape shape, Shape strides, SInt offset, Mask mask = {}) {
  return View::make(std::move(shape), std::move(strides), std::move(offset), std::move(mask));
}

// A copy of buffer 1 through a chain of views.
Ast copy_through(std::vector<View> views, int64_t size, DType dtype = Scalar::Float32) {
  AstBuilder b;
  ShapeTracker in(std::move(views)), out = ShapeTracker::make(in.shape());
  b.add_buffer({dtype, out.size().constant(), 0, 0, false, false});
  b.add_buffer({dtype, size, 0, 0, false, false});
  NodeId store = b.store(0, dtype, out, b.load(1, dtype, in));
  return b.finish(std::span(&store, 1));
}

TEST(Views, FlippedVectorsLoadFromTheirLowEnd) {
  Ast ast = copy_through({view({8}, {-1}, 7)}, 8);
  Values out = counting(Scalar::Float32, 8);
  std::ranges::reverse(out.lanes);
  expect_outputs(ast, {counting(Scalar::Float32, 8)}, {out});
  expect_outputs(ast, {counting(Scalar::Float32, 8)}, {out},
                 {.opts = {{Opt{OptOp::UPCAST, 0, 4}}}});
}

TEST(Views, FlippedWindow) {
  AstBuilder b;
  b.add_buffer({Scalar::Float32, 2, 0, 0, false, false});
  b.add_buffer({Scalar::Float32, 18, 0, 0, false, false});
  b.add_buffer({Scalar::Float32, 9, 0, 0, false, false});
  NodeId w = b.load(1, Scalar::Float32, ShapeTracker({view({2, 3, 3}, {9, -3, -1}, 8)}));
  NodeId x = b.load(2, Scalar::Float32, ShapeTracker({view({2, 3, 3}, {0, 3, 1}, 0)}));
  NodeId src[] = {w, x};
  int64_t axes[] = {1, 2};
  NodeId sum = b.reduce(Op::SUM, b.alu(Op::MUL, src), axes);
  NodeId store = b.store(0, Scalar::Float32, ShapeTracker::make({2, 1, 1}), sum);
  Ast ast = b.finish(std::span(&store, 1));
  std::vector<double> expected(2);
  for (size_t o = 0; o < 2; ++o)
    for (size_t i = 0; i < 9; ++i)
      expected[o] += static_cast<double>(o * 9 + 8 - i + 1) * static_cast<double>(i + 1);
  expect_outputs(ast, {counting(Scalar::Float32, 18), counting(Scalar::Float32, 9)},
                 {reals(Scalar::Float32, expected)}, {.walks = 12});
}

TEST(Views, PaddedAndReshaped) {
  Ast ast = copy_through({view({2, 3}, {0, 1}, 0, {{1, 2}, {0, 2}}), view({3, 2}, {2, 1}, 0)}, 2);
  expect_outputs(ast, {counting(Scalar::Float32, 2)}, {reals(Scalar::Float32, {0, 0, 0, 1, 2, 0})});
}

TEST(Views, NothingValidReadsNothing) {
  Ast ast = copy_through({view({4, 5}, {5, 1}, 0, {{0, 0}, {0, 0}}), view({20}, {1}, 0)}, 1);
  expect_outputs(ast, {counting(Scalar::Float32, 1)}, {zeros(Scalar::Float32, 20)});
}

// A buffer that the kernel never reads is still an argument.
TEST(Views, UnreadBuffersStayArguments) {
  AstBuilder b;
  for (int i = 0; i < 3; ++i) b.add_buffer({Scalar::Int32, 6, 0, 0, false, false});
  NodeId x = b.load(1, Scalar::Int32, ShapeTracker::make({6}));
  NodeId nothing = b.load(2, Scalar::Int32, ShapeTracker({view({6}, {1}, 0, {{0, 0}})}));
  NodeId src[] = {x, nothing};
  NodeId store = b.store(0, Scalar::Int32, ShapeTracker::make({6}), b.alu(Op::ADD, src));
  Ast ast = b.finish(std::span(&store, 1));
  ASSERT_EQ(ast.buffers().size(), 3u);
  Values in = counting(Scalar::Int32, 6);
  expect_outputs(ast, {in, zeros(Scalar::Int32, 6)}, {in});
}

TEST(Views, SymbolicOffsets) {
  AstBuilder b;
  uint32_t s = b.add_var({"s", 1, 99});
  SInt offset = SInt::variable(s) * 64;
  b.add_buffer({Scalar::Int32, 8 * 32, 0, 0, false, false});
  b.add_buffer({Scalar::Int32, 3200, 0, 0, false, false});
  ShapeTracker in({view({100, 32, 2}, {32, 1, 0}, 0, {{0, 100}, {0, 32}, {0, 1}}),
                   view({8, 32}, {0, 2}, offset)});
  NodeId store =
      b.store(0, Scalar::Int32, ShapeTracker::make({8, 32}), b.load(1, Scalar::Int32, in));
  Ast ast = b.finish(std::span(&store, 1));
  for (int64_t value : {1, 7, 99}) {
    std::vector<int64_t> expected;
    for (int64_t r = 0; r < 8; ++r)
      for (int64_t d = 0; d < 32; ++d) expected.push_back(value * 32 + d + 1);
    expect_outputs(ast, {counting(Scalar::Int32, 3200)}, {ints(Scalar::Int32, expected)},
                   {.vars = {{"s", value}}});
  }
}

TEST(Views, MisalignedVectors) {
  Ast half = copy_through({view({1, 2}, {3, 1}, 1)}, 3, Scalar::Float16);
  expect_outputs(half, {counting(Scalar::Float16, 3)}, {reals(Scalar::Float16, {2, 3})});
  Ast floats = copy_through({view({64}, {1}, 1)}, 65);
  std::vector<double> expected(64);
  std::iota(expected.begin(), expected.end(), 2.0);
  expect_outputs(floats, {counting(Scalar::Float32, 65)}, {reals(Scalar::Float32, expected)},
                 {.opts = {{Opt{OptOp::UPCAST, 0, 4}}, {Opt{OptOp::UPCAST, 0, 64}}}});

  // Memory of the caller that is aligned to its elements only.
  std::vector<float> memory(66, 2), result(66);
  std::shared_ptr<Device> device = open_device("cpu");
  Kernel kernel = compile(floats, device);
  kernel.launch({Buffer::wrap(device, std::span(result).subspan(1, 64)),
                 Buffer::wrap(device, std::span(memory).subspan(1, 65))});
  EXPECT_EQ(result[0], 0);
  EXPECT_EQ(result[1], 2);
  EXPECT_EQ(result[64], 2);
  EXPECT_EQ(result[65], 0);
}

TEST(Views, PartOfABufferIsUpdated) {
  AstBuilder b;
  b.add_buffer({Scalar::Float16, 4, 0, 0, false, false});
  NodeId x = b.load(0, Scalar::Float16, ShapeTracker::make({4}));
  NodeId src[] = {x, x};
  NodeId store = b.store(0, Scalar::Float16, ShapeTracker::make({4}), b.alu(Op::ADD, src));
  Ast ast = b.finish(std::span(&store, 1));
  for (const char* name : {"cpu", "interpreter"}) {
    std::shared_ptr<Device> device = open_device(name);
    Buffer all = upload(device, counting(Scalar::Float16, 8));
    compile(ast, device).launch({all.slice(2, 4)});
    EXPECT_EQ(download(all), reals(Scalar::Float16, {1, 2, 6, 8, 10, 12, 7, 8})) << name;
  }
}

TEST(Views, UpcastOfEveryAxisOfOneElement) {
  Ast ast = copy_through({view({4, 4}, {0, 0}, 0)}, 1);
  expect_outputs(ast, {reals(Scalar::Float32, {3})}, {repeated(Scalar::Float32, 3, 16)},
                 {.walks = 12});
}

TEST(Views, ImagesAreFloat32InUse) {
  AstBuilder b;
  b.add_buffer({Scalar::Float16, 2 * 3 * 4, 2, 3, false, false});
  b.add_buffer({Scalar::Float16, 2 * 3 * 4, 2, 3, false, false});
  NodeId x = b.load(1, Scalar::Float32, ShapeTracker::make({24}));
  NodeId third =
      b.constant(Scalar::Float32, float_bits(1.0 / 3), ShapeTracker({view({24}, {0}, 0)}));
  NodeId src[] = {x, third};
  NodeId store = b.store(0, Scalar::Float32, ShapeTracker::make({24}), b.alu(Op::MUL, src));
  Ast ast = b.finish(std::span(&store, 1));
  std::vector<double> expected;
  for (int i = 1; i <= 24; ++i)
    expected.push_back(static_cast<float>(i) * static_cast<float>(1.0 / 3));
  expect_outputs(ast, {counting(Scalar::Float16, 24)}, {reals(Scalar::Float16, expected)});
}

// Whatever the shape, a constant is computed once.
TEST(Views, ConstantsAreFoldedOnce) {
  KernelBuilder k;
  k.output(log2(k.constant(Scalar::Float32, 0, {6, 2, 2, 294})));
  expect_outputs(k.build(), {}, {repeated(Scalar::Float32, -HUGE_VAL, 6 * 2 * 2 * 294)},
                 {.walks = 2});
  KernelBuilder large;
  large.output(exp2(large.constant(Scalar::Float32, 3, {4096, 4096})));
  size_t uops = 0;
  GenerateHooks hooks;
  hooks.after_linearize = [&](const LinearUOps& list) { uops = list.size(); };
  Ast ast = large.build();
  Target target = generic_cpu_target();
  generate(ast, default_opts(ast, target), target, hooks);
  EXPECT_LT(uops, 20u);
}

// Full unrolling is statements in a row; what exceeds the budget is refused.
TEST(Views, FullUnrollingIsLinearOrRefused) {
  KernelBuilder k;
  k.output(k.input(Scalar::Float32, {4096}).sum(0));
  Ast sum = k.build();
  Values ones = repeated(Scalar::Float32, 1, 4096);
  expect_outputs(sum, {ones}, {reals(Scalar::Float32, {4096})},
                 {.opts = {std::vector<Opt>(4, Opt{OptOp::UNROLL, 0, 4})}});
  KernelBuilder m;
  Array a = m.input(Scalar::Float32, {64, 1, 16}), b = m.input(Scalar::Float32, {1, 64, 16});
  m.output((a * b).sum(2));
  Ast matmul = m.build();
  auto device = open_device("cpu");
  try {
    compile(matmul, device, {.opts = parse_opts("UPCAST:0:0,UPCAST:0:0,UNROLL:0:0")});
    FAIL() << "64 x 64 results at once are beyond the budget";
  } catch (const ScheduleError& e) {
    EXPECT_NE(std::string(e.what()).find("the limit is 256"), std::string::npos) << e.what();
  }
}

// Elements beyond 2^31, and bytes beyond 2^32. Needs 7 GB and a minute, so only if QUERN_LARGE is set.
TEST(Views, BeyondThirtyTwoBits) {
  if (!std::getenv("QUERN_LARGE")) GTEST_SKIP() << "QUERN_LARGE is not set";
  constexpr int64_t kSize = (int64_t{1} << 31) + 64, kFloats = 600'000'000;
  std::shared_ptr<Device> device = open_device("cpu");
  {
    KernelBuilder k;
    k.output(k.input(Scalar::Int8, {kSize}) + 1.0);
    Buffer in(device, Scalar::Int8, kSize), out(device, Scalar::Int8, kSize);
    std::vector<int8_t> values(kSize);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int8_t>(i * 7 + i / 1000);
    in.copy_from(values);
    Kernel kernel = compile(k.build(), device);
    kernel.launch({out, in});
    std::vector<int8_t> result = out.to_vector<int8_t>();
    for (size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(result[i], static_cast<int8_t>(values[i] + 1)) << i;
  }
  KernelBuilder k;
  k.output(k.input(Scalar::Float32, {1}).expand({kFloats}) + 1.0);
  Kernel kernel = compile(k.build(), device);
  Buffer in = Buffer::copy_of(device, std::array<float, 1>{1}),
         out(device, Scalar::Float32, kFloats);
  kernel.launch({out, in});
  EXPECT_EQ(out.slice(kFloats - 8, 8).to_vector<float>(), std::vector<float>(8, 2));
}

TEST(Views, NoContractionOnRequest) {
  KernelBuilder k;
  Array a = k.input(Scalar::Float32, {64}), b = k.input(Scalar::Float32, {64});
  k.output((a * b).sum(0));
  Ast ast = k.build();
  Target target = generic_cpu_target();
  EXPECT_NE(generate(ast, {}, target).source.find("llvm.fma"), std::string::npos);
  target.contract = false;
  std::string source = generate(ast, {}, target).source;
  for (const char* fused : {"llvm.fma", "llvm.fmuladd", "contract", " fast "})
    EXPECT_EQ(source.find(fused), std::string::npos) << fused;
}

}  // namespace
}  // namespace quern
