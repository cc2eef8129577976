#pragma once

#include <optional>
#include <span>
#include <string>

#include "quern/codegen/api.h"
#include "quern/devices/buffer.h"
#include "quern/runtime/kernel_file.h"

namespace quern {

// The first sample that is outside of its tolerance, as a message; nothing if all are right.
// buffers[i] is the kernel's buffer i. A NaN or infinity is right only where just that is expected.
QUERN_API std::optional<std::string> compare(std::span<const Expectation> expect,
                                             std::span<const Buffer> buffers);

// The first element in which two buffers of one type differ by more than rounding: integers must be
// equal, floats within `ulps` units in the last place of the largest element, since what cancels
// out keeps the errors of what was there.
QUERN_API std::optional<std::string> compare(const Buffer& found, const Buffer& expected,
                                             double ulps);

}  // namespace quern
