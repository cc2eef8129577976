#include "quern/runtime/devices.h"

#include <fmt/format.h>

#include "quern/codegen/error.h"
#include "quern/devices/cpu/cpu.h"
#include "quern/devices/interpreter/interpreter.h"

namespace quern {
namespace {

struct Backend {
  std::string_view name;
  std::shared_ptr<Device> (*open)();
  std::string (*describe)(const Device& device);
};

std::string describe_cpu(const Device& device) {
  const Target& target = device.target();
  return fmt::format("{}, {}-byte vectors, LLVM", target.arch, target.vector_bytes);
}

// In order of preference.
const Backend kBackends[] = {
    {"cpu", [] { return make_cpu_device(); }, describe_cpu},
    {"interpreter", [] { return make_interpreter_device(); },
     [](const Device&) {
       return std::string("executes uops step by step and checks each access");
     }},
    {"interpreter:gpu", [] { return make_interpreter_device(interpreter_gpu_target()); },
     [](const Device&) {
       return std::string("the same for work groups with local memory, as on a GPU");
     }},
};

std::string names() {
  std::string text;
  for (const Backend& backend : kBackends) {
    if (!text.empty()) text += ", ";
    text += backend.name;
  }
  return text;
}

}  // namespace

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> devices;
  for (const Backend& backend : kBackends) {
    DeviceInfo info{std::string(backend.name), false, {}, {}};
    try {
      info.description = backend.describe(*backend.open());
      info.available = true;
    } catch (const Error& e) {
      info.reason = e.what();
    }
    devices.push_back(std::move(info));
  }
  return devices;
}

std::shared_ptr<Device> open_device(std::string_view name) {
  for (const Backend& backend : kBackends)
    if (backend.name == name) return backend.open();
  raise<ArgumentError>("there is no device '{}'; known are {}", name, names());
}

Target parse_target(std::string_view name) {
  if (name == "cpu") return host_cpu_target();
  if (name == "cpu:generic") return generic_cpu_target();
  if (name == "interpreter") return interpreter_target();
  if (name == "interpreter:gpu") return interpreter_gpu_target();
  if (name.starts_with("cpu:")) {
    std::string arch(name.substr(4));
    size_t colon = arch.find(':');
    if (colon == std::string::npos) return named_cpu_target(arch);
    return cpu_target(arch.substr(0, colon), arch.substr(colon + 1));
  }
  raise<ArgumentError>(
      "there is no target '{}'; expected cpu, cpu:generic, cpu:ARCH, cpu:ARCH:FEATURES, "
      "interpreter or interpreter:gpu",
      name);
}

}  // namespace quern
