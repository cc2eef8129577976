#pragma once

#include <memory>

#include "quern/codegen/api.h"
#include "quern/codegen/target.h"
#include "quern/devices/device.h"

// The oracle: executes the linearized uops of any target one work item after the other, with the
// semantics of codegen/uop/eval.h, and checks each step. What it reports as DeviceError, with the
// kernel, the uop and the work item:
//   - an access outside of a buffer or of local memory;
//   - a read of an element that nothing has written: of local memory, or of memory that this device
//     allocated (memory that the caller owns is taken as written);
//   - a data race: two work items or tasks touch one element, at least one of them writes, and no
//     barrier of a group that both belong to lies in between;
//   - a barrier that not every work item of the group reaches, or not in the same iteration.
namespace quern {

// Wide vectors and fused multiply-adds, as a large cpu has them, so that codegen shows what it can
// do.
QUERN_API Target interpreter_target();

// Work groups of at most 1024 items with 48 KiB of local memory, scalar Alu and aligned vectors of
// 16 bytes, as a GPU has them.
QUERN_API Target interpreter_gpu_target();

// A device that executes what is generated for `target`, of whatever limits, and has its name; its language
// is Uops. Thread safe; each launch runs on the thread that makes it.
QUERN_API std::shared_ptr<Device> make_interpreter_device(Target target = interpreter_target());

}  // namespace quern
