// The parser of kernel files, the checks of the AST and, for kernels that pass them, codegen and a
// run on the interpreter: whatever the bytes are, the outcome is a kernel or a quern::Error.
// Corpus: seeds of tests/fuzz/kernel_json, and any kernel file split into lines.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "quern/codegen/error.h"
#include "quern/codegen/generate.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/devices/interpreter/interpreter.h"
#include "quern/runtime/kernel_file.h"
#include "quern/runtime/verify.h"

namespace {

constexpr int64_t kMaxFlops = 20'000;
constexpr int64_t kMaxBytes = 1 << 20;

void check(std::string_view text) {
  quern::KernelRecord kernel = quern::parse_kernel(text);
  std::string printed = quern::print_kernel(kernel);
  if (quern::print_kernel(quern::parse_kernel(printed)) != printed) __builtin_trap();
  if (kernel.flops() > kMaxFlops || kernel.bytes() > kMaxBytes) return;
  static std::shared_ptr<quern::Device> device = quern::make_interpreter_device();
  auto opts = quern::default_opts(kernel.ast, device->target());
  for (const std::vector<quern::Opt>& list : {std::vector<quern::Opt>(), opts})
    quern::generate(kernel.ast, list, device->target());
  kernel.expect.clear();
  quern::VerifyResult result = quern::verify(kernel, device, {.max_flops = kMaxFlops});
  // The default schedule gives what none gives, or both are refused.
  if (result.outcome == quern::VerifyResult::Outcome::Failed &&
      result.error.find("of the reference") != std::string::npos)
    __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    check({reinterpret_cast<const char*>(data), size});
  } catch (const quern::Error&) {
  }
  return 0;
}
