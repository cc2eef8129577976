#pragma once

#include <string>

#include "quern/codegen/target.h"
#include "quern/codegen/uop/linear.h"

namespace quern {

// LLVM 19 IR text of a kernel for a CPU:
//
//   define void @name(ptr %bufs, ptr %vars, i64 %begin, i64 %end)
//
// `bufs` points to the buffers' addresses in order of their index, `vars` to the variables' values
// (i32). A SPECIAL of kind Task counts the tasks begin .. end-1; a kernel without it does all of
// its work in each call. In any case begin < end. The text calls nothing but LLVM's intrinsics;
// of what these become, only fmod, fmodf, memcpy, memset and memmove may be missing on the target.
//
// Values are SSA throughout: a loop has phis for its counter and for the accumulators that are
// assigned in it. Nothing carries fast-math flags.
std::string render_llvm(const std::string& name, const LinearUOps& uops, const Target& target);

}  // namespace quern
