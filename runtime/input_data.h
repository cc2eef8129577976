#pragma once

#include <cstdint>

#include "quern/codegen/api.h"
#include "quern/devices/buffer.h"
#include "quern/runtime/kernel_file.h"

namespace quern {

// Fills a buffer with the input data of kernel files, which is a formula of the buffer's number and
// the element's: splitmix64 of `number` * golden ratio + element, of which the upper 24 bits h give
//   floats            (h mod 32 - 16) / 8, or (h mod 16 + 1) / 8 if positive
//   signed integers   h mod 16 - 8, or h mod 16
//   unsigned, bool    h mod 16, h mod 2
// These are exact in every type.
QUERN_API void fill_input(Buffer& buffer, uint32_t number, InputKind kind);

}  // namespace quern
