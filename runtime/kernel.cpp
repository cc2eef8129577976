#include "quern/runtime/kernel.h"

#include <array>
#include <chrono>

#include "quern/codegen/error.h"
#include "quern/codegen/generate.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/codegen/uop/float_environment.h"
#include "quern/runtime/launch_check.h"
#include "quern/runtime/log.h"

namespace quern {

Target target_of(const Device& device, const CompileOptions& options) {
  Target target = device.target();
  target.contract = target.contract && options.contract;
  return target;
}

Kernel load(const Program& program, std::span<const std::byte> binary,
            const std::shared_ptr<Device>& device) {
  Kernel kernel;
  kernel.device_ = device;
  kernel.program_ = std::make_shared<const Program>(program);
  kernel.executable_ = device->load(program, binary);
  return kernel;
}

Kernel compile(const Ast& ast, const std::shared_ptr<Device>& device,
               const CompileOptions& options) {
  FloatEnvironment environment;
  using Clock = std::chrono::steady_clock;
  auto milliseconds = [](Clock::duration d) {
    return std::chrono::duration<double, std::milli>(d).count();
  };
  Clock::time_point begin = Clock::now();
  Target target = target_of(*device, options);
  std::vector<Opt> opts = options.opts ? *options.opts : default_opts(ast, target);
  Program program = generate(ast, opts, target);
  Clock::time_point generated = Clock::now();
  std::vector<std::byte> binary = device->compile(program);
  Kernel kernel = load(program, binary, device);
  log().debug("{} [{}]: generated in {:.2f} ms, compiled in {:.2f} ms, {} bytes", program.name,
              to_string(opts), milliseconds(generated - begin),
              milliseconds(Clock::now() - generated), binary.size());
  return kernel;
}

void Kernel::launch(std::span<const Buffer> buffers, std::span<const VarValue> vars) const {
  constexpr size_t kFew = 16;
  check_buffers(*program_, *device_, buffers);
  std::vector<int64_t> values = order_vars(*program_, vars);
  std::vector<int32_t> narrow(values.begin(), values.end());

  std::array<MemoryRef, kFew> few;
  std::vector<MemoryRef> many;
  std::span<MemoryRef> refs = std::span(few).first(std::min(kFew, buffers.size()));
  if (buffers.size() > kFew) {
    many.resize(buffers.size());
    refs = many;
  }
  for (size_t i = 0; i < buffers.size(); ++i) refs[i] = buffers[i].memory();

  LaunchArgs args;
  args.buffers = refs;
  args.vars = narrow;
  for (int d = 0; d < 3; ++d) args.global_size[d] = program_->global_size[d].eval(values);
  executable_->launch(args);
}

}  // namespace quern
