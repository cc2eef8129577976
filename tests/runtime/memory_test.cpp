// Code is freed with its last Kernel.

#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

#include "quern/codegen/ast/array.h"
#include "quern/runtime/devices.h"
#include "quern/runtime/kernel.h"
#include "tests/sanitizers.h"

namespace quern {
namespace {

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

int64_t mapped_regions() {
  std::ifstream maps("/proc/self/maps");
  int64_t lines = 0;
  for (std::string line; std::getline(maps, line);) ++lines;
  return lines;
}

Ast kernel_number(int64_t i) {
  KernelBuilder k;
  Array x = k.input(Scalar::Float32, {4, 8 + i % 29});
  Array y = x * static_cast<double>(i) + 1.0;
  k.output(i % 3 == 0 ? y.sum(1) : i % 3 == 1 ? exp2(y) : y);
  return k.build();
}

void compile_and_run(const std::shared_ptr<Device>& device, const Ast& ast) {
  Kernel kernel = compile(ast, device);
  std::vector<Buffer> buffers;
  for (const BufferParam& param : ast.buffers()) {
    buffers.emplace_back(device, param.dtype, param.size);
    buffers.back().write(std::vector<std::byte>(buffers.back().bytes()));
  }
  kernel.launch(buffers);
}

TEST(MemoryGrowth, ThousandsOfKernelsLeaveNothingBehind) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer's own memory grows";
  constexpr int64_t kMegabyte = 1 << 20;
  std::shared_ptr<Device> device = open_device("cpu");
  for (int64_t i = 0; i < 500; ++i) compile_and_run(device, kernel_number(i));
  int64_t before = resident_bytes(), regions = mapped_regions();
  for (int64_t i = 500; i < 5500; ++i) compile_and_run(device, kernel_number(i));
  int64_t distinct = resident_bytes() - before;
  for (int64_t i = 0; i < 1000; ++i) compile_and_run(device, kernel_number(1));
  EXPECT_LT(distinct, 50 * kMegabyte);
  EXPECT_LT(resident_bytes() - before, 50 * kMegabyte);
  EXPECT_LT(mapped_regions(), regions + 100);
  RecordProperty("grown_kilobytes", static_cast<int>(distinct / 1024));
  std::printf("grown by %.1f MB over 5000 distinct kernels\n",
              static_cast<double>(distinct) / kMegabyte);
}

}  // namespace
}  // namespace quern
