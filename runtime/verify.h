#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/schedule/opt.h"
#include "quern/devices/device.h"
#include "quern/runtime/kernel_file.h"

namespace quern {

struct VerifyOptions {
  enum class Opts : uint8_t { None, Default, Random };
  Opts opts = Opts::Default;
  int rounds = 1;  // of Random: each with a schedule of its own
  uint64_t seed = 0;
  int64_t max_flops = INT64_MAX;  // kernels beyond these are skipped
  int64_t max_bytes = INT64_MAX;
};

struct VerifyResult {
  enum class Outcome : uint8_t { Passed, Failed, Skipped };
  Outcome outcome = Outcome::Passed;
  std::vector<Opt> opts;           // of the schedule that failed
  std::string error;               // why it failed
  std::vector<double> compile_ms;  // from AST to callable, of each schedule
};

// Runs a kernel on its input data and compares with its expected values. One without any is
// compiled, and if it is within the limits compared with what the interpreter gives, or if it is
// too large for that with a schedule without opts. What goes wrong in the kernel is a result; Error
// is thrown for nothing else. Thread safe.
QUERN_API VerifyResult verify(const KernelRecord& kernel, const std::shared_ptr<Device>& device,
                              const VerifyOptions& options);

}  // namespace quern
