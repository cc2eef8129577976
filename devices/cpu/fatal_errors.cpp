#include "quern/devices/cpu/fatal_errors.h"

#include <mutex>

#include "quern/devices/cpu/llvm.h"

namespace quern::cpu {
namespace {

std::mutex mutex;  // constant-initialized and trivially destroyed, so usable at any time
int traps = 0;
thread_local int traps_of_thread = 0;

// LLVM's frames have no cleanups to run, and unwinding passes through them.
void on_fatal_error(void*, const char* reason, bool) {
  if (traps_of_thread > 0) throw FatalLlvmError(reason);
}

}  // namespace

FatalErrorTrap::FatalErrorTrap() {
  std::lock_guard lock(mutex);
  ++traps_of_thread;
  if (traps++ == 0) llvm::install_fatal_error_handler(on_fatal_error);
}

FatalErrorTrap::~FatalErrorTrap() {
  std::lock_guard lock(mutex);
  --traps_of_thread;
  if (--traps == 0) llvm::remove_fatal_error_handler();
}

}  // namespace quern::cpu
