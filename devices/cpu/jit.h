#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace quern::cpu {

// A kernel's function (render/llvm/render_llvm.h says what it does).
using KernelFunction = void (*)(void* const* buffers, const int32_t* vars, int64_t begin,
                                int64_t end);

// The functions outside of it that a kernel may call.
std::span<const std::pair<std::string_view, void*>> runtime_symbols();

class Jit;

// Code in memory, freed with the object. It is writable while it is linked and executable after
// that, never both.
class LoadedCode {
 public:
  LoadedCode(std::shared_ptr<Jit> jit, void* dylib, KernelFunction entry)
      : jit_(std::move(jit)), dylib_(dylib), function_(entry) {}
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  KernelFunction function() const { return function_; }

 private:
  std::shared_ptr<Jit> jit_;
  void* dylib_;
  KernelFunction function_;
};

struct JitOptions {
  bool perf_map = false;
  bool gdb = false;
};

// Links objects. Thread safe.
class Jit : public std::enable_shared_from_this<Jit> {
 public:
  // Throws DeviceError if LLVM cannot set it up.
  static std::shared_ptr<Jit> create(const JitOptions& options);
  virtual ~Jit() = default;

  // Throws DeviceError, which names the kernel, if the object is damaged, calls anything but
  // `runtime_symbols`, or if there is no executable memory to be had.
  virtual std::unique_ptr<LoadedCode> load(const std::string& name,
                                           std::span<const std::byte> object) = 0;
  virtual void unload(void* dylib) noexcept = 0;
};

}  // namespace quern::cpu
