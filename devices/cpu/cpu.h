#pragma once

#include <memory>
#include <optional>
#include <string>

#include "quern/codegen/api.h"
#include "quern/codegen/program.h"
#include "quern/codegen/target.h"
#include "quern/devices/device.h"

// The processor that Quern runs on, through LLVM. All of these throw DeviceError with the reason in
// a build without it.
namespace quern {

struct CpuOptions {
  // Threads that share the tasks of a launch, the launching one among them; 0: as many as the
  // process may use. They are started by the first launch that has work for them.
  int threads = 0;
  // Instead of the host's; a program for it must be able to run here.
  std::optional<Target> target = std::nullopt;
  // Names kernels in profiles by /tmp/perf-PID.map, as `perf report` expects it.
  bool perf_map = false;
  // Tells GDB about kernels.
  bool gdb = false;
};

// What this does to the process as a whole: LLVM's native target is registered; while a compile runs,
// LLVM's fatal error handler is Quern's, and none is installed afterwards, since LLVM does not tell
// which one was there before (a host with its own installs it again); and exit() waits for compiles
// and launches in progress (process_exit.h). LLVM is set up by the first device that is opened: that
// must be over before the process exits.
QUERN_API std::shared_ptr<Device> make_cpu_device(const CpuOptions& options = {});

// What this processor can do. Features are those that it and the operating system report, each with
// its + or -; its name only selects the tuning, because a virtual machine may lack what the name
// promises.
QUERN_API Target host_cpu_target();

// The same for a cpu of that LLVM name with those features, such as "+avx2,-avx512f".
QUERN_API Target cpu_target(const std::string& arch, const std::string& features);

// The same with all features that LLVM lists for that cpu. Throws DeviceError for a name that LLVM
// does not know, and where LLVM's lists are not those of this build's processors (they are on
// x86-64).
QUERN_API Target named_cpu_target(const std::string& arch);

// The assembly of a program. Throws CompileError as Device::compile does.
QUERN_API std::string disassemble(const Program& program);

}  // namespace quern
