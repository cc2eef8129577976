#pragma once

// All that a program needs that writes kernels and runs them:
//
//   array.h     KernelBuilder and Array: kernels as expressions over arrays
//   devices.h   open_device, list_devices
//   buffer.h    Buffer: memory of a device
//   kernel.h    compile, Kernel::launch
//   schedule.h  Opt, parse_opts, default_opts: what a kernel's loops become
//   error.h     what is thrown
//
// Kernel files, .npy files and the steps of the compiler have headers of their own:
// <quern/runtime/kernel_file.h>, <quern/runtime/npy.h>, <quern/codegen/generate.h>.

#include "quern/codegen/ast/array.h"
#include "quern/codegen/error.h"
#include "quern/codegen/schedule/opt.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/devices/buffer.h"
#include "quern/runtime/devices.h"
#include "quern/runtime/kernel.h"
