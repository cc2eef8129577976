#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/ast/ast.h"
#include "quern/codegen/program.h"
#include "quern/codegen/schedule/opt.h"
#include "quern/devices/buffer.h"
#include "quern/devices/device.h"

namespace quern {

// The value of a variable, by name.
struct VarValue {
  std::string_view name;
  int64_t value = 0;
};

// A compiled kernel, loaded on a device: a cheap handle whose copies share the code. Keeps the
// device alive. Thread safe: it may be launched from many threads at once, as long as no launch
// writes what another one reads or writes.
class QUERN_API Kernel {
 public:
  const Program& program() const { return *program_; }
  const std::shared_ptr<Device>& device() const { return device_; }

  // Runs to the end. `buffers` are in the order of program().buffers: outputs first. Each variable
  // of the kernel must be given once. Before anything runs, everything is checked: ArgumentError
  // for a wrong count, device, dtype, size (at least that of the parameter) or alignment, for an
  // output that is read-only or that shares memory with another argument, and for a variable that
  // is unknown, missing, given twice or outside of its range. DeviceError if the device fails.
  void launch(std::span<const Buffer> buffers, std::span<const VarValue> vars = {}) const;
  void launch(std::initializer_list<Buffer> buffers,
              std::initializer_list<VarValue> vars = {}) const {
    launch(std::span(buffers.begin(), buffers.size()), std::span(vars.begin(), vars.size()));
  }

 private:
  friend Kernel load(const Program&, std::span<const std::byte>, const std::shared_ptr<Device>&);
  std::shared_ptr<Device> device_;
  std::shared_ptr<const Program> program_;
  std::shared_ptr<Executable> executable_;
};

struct CompileOptions {
  // What to apply to the schedule; without it the target's default schedule.
  std::optional<std::vector<Opt>> opts = std::nullopt;
  // Whether a sum of products may use fused multiply-adds, which round once less. Without them a
  // kernel gives the same bits on every device that does each operation as IEEE 754 says.
  bool contract = true;
};

// AST to callable kernel. Thread safe. Throws ScheduleError for an illegal opt, AstError for what
// only lowering can see (an in-place read at another element), CompileError with log and source.
QUERN_API Kernel compile(const Ast& ast, const std::shared_ptr<Device>& device,
                         const CompileOptions& options = {});

// The steps of compile(), for those who want to look or to store what lies between: generate() in
// codegen/generate.h makes the Program, Device::compile the binary, and this loads it.
QUERN_API Kernel load(const Program& program, std::span<const std::byte> binary,
                      const std::shared_ptr<Device>& device);

// What compile() generates code for.
QUERN_API Target target_of(const Device& device, const CompileOptions& options);

}  // namespace quern
