#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/target.h"
#include "quern/devices/device.h"

namespace quern {

// What is known of a backend's device without running anything on it.
struct DeviceInfo {
  std::string name;  // opens it: open_device(name)
  bool available = false;
  std::string description;  // if available: what it is
  std::string reason;       // if not: exactly why
};

// Every device of every backend of this build, available or not; the default one first. Never
// throws for a device that is missing.
QUERN_API std::vector<DeviceInfo> list_devices();

// Opens the device of that name: "cpu", "interpreter". Each call makes a device of its own;
// programs and buffers belong to the one that made them. Throws ArgumentError with the list of
// names for one that does not exist, and DeviceError with the reason for one that is unavailable.
QUERN_API std::shared_ptr<Device> open_device(std::string_view name);

// What to generate code for, without a device to run it on: "cpu" is this machine, "cpu:generic" an
// AVX-512 one, "cpu:haswell" LLVM's cpu of that name, "cpu:x86-64:+avx2,+fma" one with just those
// features, and "interpreter". Throws ArgumentError or DeviceError for a name that is none of
// these.
QUERN_API Target parse_target(std::string_view name);

}  // namespace quern
