#include "quern/devices/cpu/cpu.h"

#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "quern/codegen/error.h"
#include "tests/devices/cpu_kernel.h"
#include "tests/sanitizers.h"

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

// out[i] = in[i] + addend, 16 lanes a task.
Kernel add_constant(int64_t n, double addend) {
  Kernel k;
  UOp out = k.output(kF32, n), in = k.input(kF32, n);
  UOp at = k(Op::MUL, k.task(n / 16), k.number(16));
  UOp x = k.load(in, at, 16);
  k.store(out, at, k(Op::ADD, x, k.real(x->dtype, addend)));
  return k;
}

Program with_text(std::string source) {
  Program p = add_constant(16, 1).program(host().target());
  p.source = std::move(source);
  return p;
}

CompileError compile_error(const Program& program) {
  try {
    host().compile(program);
  } catch (const CompileError& error) {
    return error;
  }
  ADD_FAILURE() << "compiled";
  return CompileError("");
}

struct Maps {
  int regions = 0;
  bool writable_code = false;
};

Maps memory_maps() {
  std::ifstream file("/proc/self/maps");
  Maps maps;
  for (std::string line; std::getline(file, line); ++maps.regions)
    maps.writable_code |= line.find(" rwx") != std::string::npos;
  return maps;
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(Cpu, TasksOnManyThreads) {
  std::shared_ptr<Device> device = make_cpu_device({.threads = 3});
  constexpr int64_t kSize = 16 * 1000;
  Kernel k = add_constant(kSize, 2);
  Data data[] = {Data::zeros(kF32, kSize), Data::zeros(kF32, kSize)};
  for (int64_t i = 0; i < kSize; ++i)
    data[1].lanes[static_cast<size_t>(i)] = float_bits(static_cast<double>(i));
  test::run(*device, k, data);
  for (int64_t i = 0; i < kSize; ++i)
    ASSERT_EQ(bits_float(data[0].lanes[static_cast<size_t>(i)]), static_cast<double>(i + 2));
}

TEST(Cpu, AnEmptyLaunchRunsNothing) {
  Program p = add_constant(16, 1).program(host().target());
  auto executable = test::build(host(), p);
  LaunchArgs args;
  args.global_size[0] = 0;
  executable->launch(args);
  args.global_size[0] = 1;
  args.global_size[1] = 0;
  executable->launch(args);
}

TEST(Cpu, OffsetsAndMemoryInPlace) {
  float values[33] = {};
  for (int i = 0; i < 33; ++i) values[i] = static_cast<float>(i);
  std::shared_ptr<Memory> memory = host().wrap(values, sizeof values);
  EXPECT_EQ(memory->host(), values);
  EXPECT_EQ(memory->bytes(), sizeof values);
  std::shared_ptr<Memory> out = host().allocate(16 * sizeof(float));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(out->host()) % 64, 0u);
  MemoryRef refs[] = {{out, 0}, {memory, 4}};
  LaunchArgs args;
  args.buffers = refs;
  test::build(host(), add_constant(16, 1).program(host().target()))->launch(args);
  float got = 0;
  out->read(4 * sizeof(float), std::as_writable_bytes(std::span(&got, 1)));
  EXPECT_EQ(got, 6.0f);
}

TEST(Cpu, AllocationFailureNamesTheSize) {
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 100, size_t{1} << 60}) {
    try {
      host().allocate(bytes);
      ADD_FAILURE();
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos);
    }
  }
  EXPECT_EQ(host().allocate(0)->bytes(), 0u);
}

TEST(Cpu, TextThatLlvmCannotReadIsReported) {
  testing::internal::CaptureStderr();
  CompileError syntax = compile_error(with_text("define void @kernel( {"));
  EXPECT_NE(syntax.log().find("error"), std::string::npos) << syntax.log();
  EXPECT_EQ(syntax.source(), "define void @kernel( {");
  EXPECT_NE(std::string(syntax.what()).find("kernel"), std::string::npos);
  CompileError ill_typed = compile_error(with_text(
      "define void @kernel() {\n %1 = phi i32 [ 0, %2 ]\n br label %2\n2:\n ret void\n}"));
  EXPECT_FALSE(ill_typed.log().empty());
  compile_error(with_text("define void @other() {\n ret void\n}"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Cpu, OnlyKnownFunctionsAreCalled) {
  CompileError error =
      compile_error(with_text("declare void @system(ptr)\ndefine void @kernel() {\n call void "
                              "@system(ptr null)\n ret void\n}"));
  EXPECT_NE(std::string(error.what()).find("system"), std::string::npos) << error.what();
}

#ifdef __x86_64__
// LLVM has no code for another processor's instruction and gives up; the next compile works.
TEST(Cpu, AFatalLlvmErrorIsAnException) {
  test::LeaksAllowed leaks;  // what LLVM was working on must not be touched again
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    CompileError error = compile_error(
        with_text("define void @kernel() {\n call void @llvm.nvvm.barrier0()\n ret void\n}"));
    EXPECT_NE(error.log().find("select"), std::string::npos) << error.what();
    EXPECT_FALSE(error.source().empty());
    EXPECT_FALSE(host().compile(add_constant(16, 1).program(host().target())).empty());
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Cpu, FeaturesCountAndNotTheName) {
  std::string without = "+avx,+avx2,+fma,+f16c,-avx512f";
  Target target = cpu_target("skylake-avx512", without);
  EXPECT_EQ(target.vector_bytes, 32);
  std::string text = disassemble(add_constant(64, 1).program(target));
  EXPECT_NE(text.find("ymm"), std::string::npos) << text;
  EXPECT_EQ(text.find("zmm"), std::string::npos) << text;
  EXPECT_EQ(text.find("%k"), std::string::npos) << text;
  Target baseline = cpu_target("x86-64", "");
  EXPECT_EQ(disassemble(add_constant(64, 1).program(baseline)).find("ymm"), std::string::npos);
  Target wide =
      cpu_target("skylake-avx512", "+avx,+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512dq,+avx512vl");
  EXPECT_NE(disassemble(add_constant(64, 1).program(wide)).find("zmm"), std::string::npos);
}

TEST(Cpu, NamedProcessorsHaveTheirFeatures) {
  Target haswell = named_cpu_target("haswell"), server = named_cpu_target("skylake-avx512");
  EXPECT_EQ(haswell.vector_bytes, 32);
  EXPECT_TRUE(haswell.has_fma && haswell.native_float16_cast);
  EXPECT_EQ(server.vector_bytes, 64);
  EXPECT_EQ(named_cpu_target("x86-64").vector_bytes, 16);
  EXPECT_NE(disassemble(add_constant(64, 1).program(haswell)).find("ymm"), std::string::npos);
  EXPECT_THROW(named_cpu_target("pentium9"), DeviceError);
  EXPECT_THROW(named_cpu_target(""), DeviceError);
}

TEST(Cpu, UnknownProcessorsAndFeaturesAreRefused) {
  testing::internal::CaptureStderr();
  EXPECT_THROW(disassemble(add_constant(16, 1).program(cpu_target("pentium9", ""))), CompileError);
  EXPECT_THROW(disassemble(add_constant(16, 1).program(cpu_target("x86-64", "+warp"))),
               CompileError);
  EXPECT_THROW(disassemble(add_constant(16, 1).program(cpu_target("x86-64", "avx"))), CompileError);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Denormals are kept and rounding is to nearest whatever the caller uses, which he gets back.
TEST(Cpu, FloatEnvironmentIsTheDefault) {
  constexpr unsigned kFlushAndRoundUp = 0x1f80 | 0x8040 | 0x4000;
  float one[16], sum[16] = {}, tiny = 1e-40f, half = 0;
  std::fill(std::begin(one), std::end(one), 1.0f);
  auto add = test::build(host(), add_constant(16, 0x1p-30).program(host().target()));
  MemoryRef add_refs[] = {{host().wrap(sum, sizeof sum), 0}, {host().wrap(one, sizeof one), 0}};
  LaunchArgs add_args;
  add_args.buffers = add_refs;

  Kernel k;
  UOp out = k.output(kF32, 1), in = k.input(kF32, 1);
  k.store(out, k.number(0), k(Op::MUL, k.load(in, k.number(0)), k.real(kF32, 0.5)));
  auto halve = test::build(host(), k.program(host().target()));
  MemoryRef halve_refs[] = {{host().wrap(&half, sizeof half), 0},
                            {host().wrap(&tiny, sizeof tiny), 0}};
  LaunchArgs halve_args;
  halve_args.buffers = halve_refs;

  unsigned before = _mm_getcsr();
  _mm_setcsr(kFlushAndRoundUp);
  add->launch(add_args);
  halve->launch(halve_args);
  unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  EXPECT_EQ(after & ~0x3fu, kFlushAndRoundUp);
  EXPECT_EQ(sum[0], 1.0f);
  EXPECT_EQ(half, 5e-41f);
}
#endif

TEST(Cpu, ADamagedObjectIsRefused) {
  Program p = add_constant(16, 1).program(host().target());
  std::vector<std::byte> object = host().compile(p);
  EXPECT_THROW(host().load(p, std::span(object).first(object.size() / 2)), DeviceError);
  EXPECT_THROW(host().load(p, {}), DeviceError);
  std::vector<std::byte> zeros(object.size());
  EXPECT_THROW(host().load(p, zeros), DeviceError);
  p.name = "other";
  EXPECT_THROW(host().load(p, object), DeviceError);
}

TEST(Cpu, CodeOutlivesTheDeviceAndIsFreedWithItsExecutable) {
  std::shared_ptr<Device> device = make_cpu_device({.threads = 2});
  auto executable = test::build(*device, add_constant(32, 1).program(device->target()));
  device.reset();
  Data data[] = {Data::zeros(kF32, 32), Data::zeros(kF32, 32)};
  test::launch(host(), *executable, data, 2);
  EXPECT_EQ(bits_float(data[0].lanes[31]), 1.0);
  EXPECT_FALSE(memory_maps().writable_code);

  std::vector<std::shared_ptr<Executable>> alive;
  int before = memory_maps().regions;
  for (int i = 0; i < 100; ++i)
    alive.push_back(test::build(host(), add_constant(16, i).program(host().target())));
  EXPECT_GE(memory_maps().regions, before + 100);
  EXPECT_FALSE(memory_maps().writable_code);
  alive.clear();
  EXPECT_LE(memory_maps().regions, before + 20);
}

TEST(Cpu, MemoryStaysBounded) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer's own memory grows";
  auto compile_and_drop = [](int from, int to) {
    for (int i = from; i < to; ++i)
      test::build(host(), add_constant(16, i).program(host().target(), "k" + std::to_string(i)));
  };
  compile_and_drop(0, 200);
  int64_t before = resident_bytes();
  compile_and_drop(200, 1000);
  EXPECT_LT(resident_bytes() - before, 8 << 20);
}

TEST(Cpu, ManyThreadsCompileAndLaunch) {
  std::shared_ptr<Device> device = make_cpu_device({.threads = 2});
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        Kernel k = add_constant(160, 100 * t + i);
        Data data[] = {Data::zeros(kF32, 160), Data::zeros(kF32, 160)};
        test::run(*device, k, data);
        for (int64_t lane : data[0].lanes) wrong += bits_float(lane) != 100 * t + i;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Cpu, PerfMapAndGdb) {
  std::shared_ptr<Device> device = make_cpu_device({.threads = 1, .perf_map = true, .gdb = true});
  auto executable =
      test::build(*device, add_constant(16, 1).program(device->target(), "seen_by_perf"));
  std::string path = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(text.find(" seen_by_perf\n"), std::string::npos) << text;
  std::filesystem::remove(path);
  Data data[] = {Data::zeros(kF32, 16), Data::zeros(kF32, 16)};
  test::launch(*device, *executable, data);
  EXPECT_EQ(bits_float(data[0].lanes[0]), 1.0);
}

}  // namespace
}  // namespace quern
