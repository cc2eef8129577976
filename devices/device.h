#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/program.h"
#include "quern/codegen/target.h"

namespace quern {

// Memory of a device. Shared by everything that refers to it (buffers, views of buffers, launches
// in flight) and freed with the last of them.
class QUERN_API Memory {
 public:
  virtual ~Memory() = default;
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  virtual size_t bytes() const = 0;
  // The address if the host can read and write it in place, else null.
  virtual void* host() = 0;
  // Copies between this memory, from byte `offset` on, and the host. The range has been checked.
  // They wait for launches that use the memory.
  virtual void read(size_t offset, std::span<std::byte> to) = 0;
  virtual void write(size_t offset, std::span<const std::byte> from) = 0;
};

// A pointer argument of a launch: memory and the byte at which element 0 lies.
struct MemoryRef {
  std::shared_ptr<Memory> memory;
  size_t offset = 0;
};

// What a launch needs beside the executable. Counts, sizes, types, alignment and variable ranges
// have been checked by the caller (runtime/kernel.h does).
struct LaunchArgs {
  std::span<const MemoryRef> buffers;
  std::span<const int32_t> vars;
  int64_t global_size[3] = {1, 1, 1};
  // Of a program with a free local size: work items of a group, which divide global_size.
  int64_t local_size[3] = {1, 1, 1};
};

// A Program loaded on a device. Keeps its device's context alive, not the Program. Launching is
// thread safe. The code is freed with the object, after launches in flight.
class QUERN_API Executable {
 public:
  virtual ~Executable() = default;
  Executable() = default;
  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  // Runs to the end. An empty launch dimension runs nothing. Throws DeviceError with the kernel's
  // name if the device reports a failure.
  virtual void launch(const LaunchArgs& args) = 0;
};

// A backend's compiler and memory. Thread safe throughout.
class QUERN_API Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // The name that opens it again: "cpu", "interpreter", "cuda:0".
  virtual const std::string& name() const = 0;
  // What to generate code for.
  virtual const Target& target() const = 0;

  // Uninitialized memory of that many bytes (0 is allowed), aligned to at least 64 bytes. Throws
  // DeviceError with the wanted size when there is not enough.
  virtual std::shared_ptr<Memory> allocate(size_t bytes) = 0;
  // Memory that the caller owns and keeps alive; used in place where the device can, and refused by
  // DeviceError where it cannot.
  virtual std::shared_ptr<Memory> wrap(void* host, size_t bytes) = 0;

  // The program's machine code, or whatever `load` takes: bytes that may be stored and loaded by
  // another process with the same target. Throws CompileError with the compiler's log and the
  // source.
  virtual std::vector<std::byte> compile(const Program& program) = 0;
  virtual std::shared_ptr<Executable> load(const Program& program,
                                           std::span<const std::byte> binary) = 0;
};

}  // namespace quern
