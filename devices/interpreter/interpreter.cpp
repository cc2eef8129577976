#include "devices/interpreter/interpreter.h"

#include <algorithm>
#include <utility>

#include "codegen/error.h"
#include "codegen/uop_text.h"
#include "devices/interpreter/instructions.h"
#include "devices/interpreter/machine.h"
#include "devices/interpreter/memory.h"

namespace quern {
namespace interpreter {
namespace {

class InterpreterExecutable final : public Executable {
 public:
  InterpreterExecutable(const Program& program, Code code)
      : name_(program.name), code_(std::move(code)) {
    std::copy_n(program.local_size, 3, local_size_);
  }

  void launch(const LaunchArgs& args) override {
    Machine::Sizes sizes;
    std::copy_n(args.global_size, 3, sizes.groups);
    std::copy_n(local_size_, 3, sizes.locals);
    Machine(name_, code_, args.buffers, args.vars, sizes).run();
  }

 private:
  std::string name_;
  Code code_;
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
  explicit InterpreterDevice(Target target) : target_(std::move(target)) {
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
  std::string name_ = "interpreter";
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

std::shared_ptr<Device> make_interpreter_device(Target target) {
  return std::make_shared<interpreter::InterpreterDevice>(std::move(target));
}

}  // namespace quern
