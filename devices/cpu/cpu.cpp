#include "quern/devices/cpu/cpu.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "quern/codegen/error.h"
#include "quern/devices/cpu/compiler.h"
#include "quern/devices/cpu/jit.h"
#include "quern/devices/cpu/kernel_environment.h"
#include "quern/devices/cpu/pool.h"

namespace quern {
namespace cpu {
namespace {

constexpr size_t kAlign = 64;
// Large memory is made of pages of this size where the system has them: fewer faults and TLB
// misses.
constexpr size_t kHugePage = 2 << 20;
// A launch that does less than this many operations and bytes of memory traffic is over before
// another thread would have woken up.
constexpr int64_t kWorkForThreads = 64 << 10;
constexpr size_t kBuffersOnStack = 16;

class CpuMemory final : public Memory {
 public:
  explicit CpuMemory(size_t bytes) : bytes_(bytes) {
    size_t align = bytes < 2 * kHugePage ? kAlign : kHugePage;
    size_t rounded = (std::max<size_t>(bytes, 1) + align - 1) & ~(align - 1);
    if (rounded >= bytes) owned_.reset(std::aligned_alloc(align, rounded));
    if (!owned_) raise<DeviceError>("device cpu: cannot allocate {} bytes", bytes);
    data_ = owned_.get();
#ifdef MADV_HUGEPAGE
    if (align == kHugePage)
      ::madvise(data_, rounded, MADV_HUGEPAGE);  // a hint, which may be refused
#endif
  }
  CpuMemory(void* host, size_t bytes) : bytes_(bytes), data_(host) {}

  size_t bytes() const override { return bytes_; }
  void* host() override { return data_; }
  void read(size_t offset, std::span<std::byte> to) override {
    if (!to.empty()) std::memcpy(to.data(), static_cast<std::byte*>(data_) + offset, to.size());
  }
  void write(size_t offset, std::span<const std::byte> from) override {
    if (!from.empty())
      std::memcpy(static_cast<std::byte*>(data_) + offset, from.data(), from.size());
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  size_t bytes_;
  std::unique_ptr<void, Free> owned_;
  void* data_ = nullptr;
};

class CpuExecutable final : public Executable {
 public:
  CpuExecutable(const Program& program, std::unique_ptr<LoadedCode> code,
                std::shared_ptr<ThreadPool> pool)
      : flops_(program.flops),
        bytes_(program.bytes),
        code_(std::move(code)),
        pool_(std::move(pool)) {}

  void launch(const LaunchArgs& args) override {
    for (int64_t size : args.global_size)
      if (size <= 0) return;
    std::array<void*, kBuffersOnStack> few;
    std::vector<void*> many;
    void** buffers = few.data();
    if (args.buffers.size() > few.size()) {
      many.resize(args.buffers.size());
      buffers = many.data();
    }
    for (size_t i = 0; i < args.buffers.size(); ++i) buffers[i] = address(args.buffers[i]);

    auto run = [function = code_->function(), buffers, vars = args.vars.data()](int64_t begin,
                                                                                int64_t end) {
      KernelEnvironment environment;
      function(buffers, vars, begin, end);
    };
    int64_t tasks = args.global_size[0];
    if (tasks == 1 || pool_->threads() == 1 || is_small(args.vars)) return run(0, tasks);
    pool_->run(tasks, run);
  }

 private:
  // A buffer that the kernel does not touch may have no memory.
  static void* address(const MemoryRef& ref) {
    return ref.memory ? static_cast<std::byte*>(ref.memory->host()) + ref.offset : nullptr;
  }

  // Without estimates a kernel is taken for a large one.
  bool is_small(std::span<const int32_t> vars) const {
    if (flops_.is_constant() && bytes_.is_constant())
      return is_small(flops_.constant(), bytes_.constant());
    std::vector<int64_t> values(vars.begin(), vars.end());
    return is_small(flops_.eval(values), bytes_.eval(values));
  }
  static bool is_small(int64_t flops, int64_t bytes) {
    return (flops > 0 || bytes > 0) && flops < kWorkForThreads && bytes < kWorkForThreads;
  }

  SInt flops_, bytes_;
  std::unique_ptr<LoadedCode> code_;
  std::shared_ptr<ThreadPool> pool_;
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuOptions& options)
      : target_(options.target ? *options.target : host_cpu_target()),
        jit_(Jit::create({options.perf_map, options.gdb})),
        pool_(std::make_shared<ThreadPool>(options.threads)) {}

  const std::string& name() const override { return name_; }
  const Target& target() const override { return target_; }

  std::shared_ptr<Memory> allocate(size_t bytes) override {
    return std::make_shared<CpuMemory>(bytes);
  }
  std::shared_ptr<Memory> wrap(void* host, size_t bytes) override {
    return std::make_shared<CpuMemory>(host, bytes);
  }

  std::vector<std::byte> compile(const Program& program) override {
    return compilers_.compile(program);
  }
  std::shared_ptr<Executable> load(const Program& program,
                                   std::span<const std::byte> binary) override {
    return std::make_shared<CpuExecutable>(program, jit_->load(program.name, binary), pool_);
  }

 private:
  std::string name_ = "cpu";
  Target target_;
  CompilerPool compilers_;
  std::shared_ptr<Jit> jit_;
  std::shared_ptr<ThreadPool> pool_;
};

}  // namespace
}  // namespace cpu

std::shared_ptr<Device> make_cpu_device(const CpuOptions& options) {
  return std::make_shared<cpu::CpuDevice>(options);
}

std::string disassemble(const Program& program) { return cpu::assembly(program); }

}  // namespace quern
