#include "quern/runtime/verify.h"

#include <chrono>
#include <optional>

#include "quern/codegen/error.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/devices/interpreter/interpreter.h"
#include "quern/runtime/compare.h"
#include "quern/runtime/input_data.h"
#include "quern/runtime/kernel.h"

namespace quern {
namespace {

using Outcome = VerifyResult::Outcome;

// What the interpreter takes a second for.
constexpr int64_t kMaxInterpreterFlops = 2'000'000;
// Of two schedules of a kernel that has no expected values and so no error bound.
constexpr double kUlps = 1024;

std::vector<Buffer> make_buffers(const KernelRecord& kernel,
                                 const std::shared_ptr<Device>& device) {
  std::vector<Buffer> buffers;
  for (const BufferParam& param : kernel.ast.buffers()) {
    buffers.emplace_back(device, param.dtype, param.size);
    fill_input(buffers.back(), static_cast<uint32_t>(buffers.size() - 1), kernel.input);
  }
  return buffers;
}

// FNV-1a, so that a kernel meets the same schedules wherever it stands.
uint64_t seed_of(const KernelRecord& kernel, const VerifyOptions& options, int round) {
  uint64_t hash = 0xcbf29ce484222325u ^ options.seed;
  for (char c : kernel.id) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return (hash ^ static_cast<uint64_t>(round)) * 0x100000001b3u;
}

class Verification {
 public:
  Verification(const KernelRecord& kernel, const std::shared_ptr<Device>& device,
               const VerifyOptions& options)
      : kernel_(kernel), device_(device), options_(options) {}

  VerifyResult run() {
    bool is_large = kernel_.flops() > options_.max_flops || kernel_.bytes() > options_.max_bytes;
    if (is_large && !kernel_.expect.empty()) {
      result_.outcome = Outcome::Skipped;
      return std::move(result_);
    }
    int rounds = options_.opts == VerifyOptions::Opts::Random ? options_.rounds : 1;
    for (int round = 0; round < rounds && result_.outcome == Outcome::Passed; ++round) {
      try {
        result_.opts = opts(round);
        Kernel compiled = compile_timed();
        if (!is_large) check(compiled, round);
      } catch (const std::exception& e) {
        fail(e.what());
      }
    }
    return std::move(result_);
  }

 private:
  std::vector<Opt> opts(int round) const {
    const Target& target = device_->target();
    switch (options_.opts) {
      case VerifyOptions::Opts::None: return {};
      case VerifyOptions::Opts::Default: return default_opts(kernel_.ast, target);
      case VerifyOptions::Opts::Random:
        return random_opts(kernel_.ast, target, seed_of(kernel_, options_, round));
    }
    return {};
  }

  Kernel compile_timed() {
    auto begin = std::chrono::steady_clock::now();
    Kernel compiled = compile(kernel_.ast, device_, {.opts = result_.opts});
    std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    result_.compile_ms.push_back(time.count());
    return compiled;
  }

  void check(const Kernel& compiled, int round) {
    if (round == 0) buffers_ = make_buffers(kernel_, device_);
    else restore_outputs();
    compiled.launch(buffers_, kernel_.vars());
    if (!kernel_.expect.empty()) {
      if (auto error = compare(kernel_.expect, buffers_)) fail(*error);
      return;
    }
    if (reference_.empty()) reference_ = run_reference();
    for (size_t i = 0; i < kernel_.ast.outputs().size(); ++i)
      if (auto error = compare(buffers_[i], reference_[i], kUlps))
        return fail(fmt::format("buffer {}, {} (of the reference)", i, *error));
  }

  void restore_outputs() {
    for (size_t i = 0; i < kernel_.ast.outputs().size(); ++i)
      fill_input(buffers_[i], static_cast<uint32_t>(i), kernel_.input);
  }

  std::vector<Buffer> run_reference() const {
    bool is_small = kernel_.flops() <= kMaxInterpreterFlops;
    std::shared_ptr<Device> device = is_small ? make_interpreter_device() : device_;
    std::vector<Buffer> buffers = make_buffers(kernel_, device);
    compile(kernel_.ast, device, {.opts = std::vector<Opt>()}).launch(buffers, kernel_.vars());
    return buffers;
  }

  void fail(std::string error) {
    result_.outcome = Outcome::Failed;
    result_.error = std::move(error);
  }

  const KernelRecord& kernel_;
  const std::shared_ptr<Device>& device_;
  const VerifyOptions& options_;
  VerifyResult result_;
  std::vector<Buffer> buffers_, reference_;
};

}  // namespace

VerifyResult verify(const KernelRecord& kernel, const std::shared_ptr<Device>& device,
                    const VerifyOptions& options) {
  return Verification(kernel, device, options).run();
}

}  // namespace quern
