#include "quern/devices/interpreter/interpreter.h"

#include <algorithm>
#include <utility>

#include "quern/codegen/error.h"
#include "quern/codegen/uop/float_environment.h"
#include "quern/codegen/uop/text.h"
#include "quern/devices/interpreter/instructions.h"
#include "quern/devices/interpreter/machine.h"
#include "quern/devices/interpreter/memory.h"

namespace quern {
namespace interpreter {
namespace {

class InterpreterExecutable final : public Executable {
 public:
  InterpreterExecutable(const Program& program, Code code)
      : name_(program.name),
        code_(std::move(code)),
        has_free_local_size_(program.has_free_local_size) {
    std::copy_n(program.local_size, 3, local_size_);
  }

  void launch(const LaunchArgs& args) override {
    FloatEnvironment environment;
    Machine::Sizes sizes;
    for (int d = 0; d < 3; ++d) {
      sizes.locals[d] = has_free_local_size_ ? args.local_size[d] : local_size_[d];
      sizes.groups[d] = args.global_size[d];
      if (!has_free_local_size_) continue;
      if (sizes.locals[d] < 1 || args.global_size[d] % sizes.locals[d] != 0)
        raise<DeviceError>("kernel {}: a local size of {} does not divide {} work items", name_,
                           sizes.locals[d], args.global_size[d]);
      sizes.groups[d] /= sizes.locals[d];
    }
    Machine(name_, code_, args.buffers, args.vars, sizes).run();
  }

 private:
  std::string name_;
  Code code_;
  bool has_free_local_size_;
  int64_t local_size_[3];
};

Code read_code(const Program& program, std::string_view text) {
  try {
    Graph graph;
    return make_code(parse_uops(text, graph));
  } catch (const CompileError& e) {
    throw CompileError(fmt::format("kernel {}: {}", program.name, e.what()), e.log(),
                       std::string(text));
  }
}

class InterpreterDevice final : public Device {
 public:
  explicit InterpreterDevice(Target target) : name_(target.name), target_(std::move(target)) {
    target_.language = Target::Language::Uops;
  }

  const std::string& name() const override { return name_; }
  const Target& target() const override { return target_; }

  std::shared_ptr<Memory> allocate(size_t bytes) override {
    return std::make_shared<TrackedMemory>(bytes);
  }
  std::shared_ptr<Memory> wrap(void* host, size_t bytes) override {
    return std::make_shared<TrackedMemory>(host, bytes);
  }

  std::vector<std::byte> compile(const Program& program) override {
    read_code(program, program.source);
    auto text = std::as_bytes(std::span(program.source));
    return {text.begin(), text.end()};
  }

  std::shared_ptr<Executable> load(const Program& program,
                                   std::span<const std::byte> binary) override {
    std::string_view text(reinterpret_cast<const char*>(binary.data()), binary.size());
    return std::make_shared<InterpreterExecutable>(program, read_code(program, text));
  }

 private:
  std::string name_;
  Target target_;
};

}  // namespace
}  // namespace interpreter

Target interpreter_target() {
  Target target;
  target.name = "interpreter";
  target.language = Target::Language::Uops;
  return target;
}

Target interpreter_gpu_target() {
  Target target;
  target.name = "interpreter:gpu";
  target.language = Target::Language::Uops;
  target.vector_bytes = 0;
  target.memory_bytes = 16;
  target.aligned_vectors = true;
  target.masked_memory = false;
  target.has_local = target.has_shared = true;
  target.shared_max = 48 << 10;
  target.scratch_max = 0;
  target.global_max[0] = INT32_MAX;
  target.global_max[1] = target.global_max[2] = 65535;
  target.local_max[0] = target.local_max[1] = 1024;
  target.local_max[2] = 64;
  target.group_max = 1024;
  return target;
}

std::shared_ptr<Device> make_interpreter_device(Target target) {
  return std::make_shared<interpreter::InterpreterDevice>(std::move(target));
}

}  // namespace quern
