// The reader of .npy files: any bytes are an array or a FileError.

#include "quern/runtime/npy.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "quern/codegen/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    quern::NpyArray array =
        quern::parse_npy({reinterpret_cast<const char*>(data), size}, "fuzz.npy");
    if (array.data.size() != static_cast<size_t>(array.size() * array.dtype.itemsize()))
      __builtin_trap();
  } catch (const quern::FileError&) {
  }
  return 0;
}
