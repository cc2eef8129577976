#include "quern/codegen/error.h"
#include "quern/devices/cpu/cpu.h"

// In the place of the other files where the build lacks what they need; QUERN_MISSING says what.
namespace quern {
namespace {

[[noreturn]] void unavailable() {
  raise<DeviceError>("device cpu is unavailable: {}", QUERN_MISSING);
}

}  // namespace

std::shared_ptr<Device> make_cpu_device(const CpuOptions&) { unavailable(); }
Target host_cpu_target() { unavailable(); }
Target cpu_target(const std::string&, const std::string&) { unavailable(); }
Target named_cpu_target(const std::string&) { unavailable(); }
std::string disassemble(const Program&) { unavailable(); }

}  // namespace quern
