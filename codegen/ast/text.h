#pragma once

#include <string>

#include "quern/codegen/api.h"
#include "quern/codegen/ast/ast.h"

namespace quern {

// The kernel for readers: its variables and buffers, then a node a line, with its shape, dtype and
// what it refers to:
//
//   buffer 0: float32[4] written
//   buffer 1: float32[32]
//   %0 = LOAD float32 [4,8] buffer 1 V([4,8]; [8,1]; 0; -)
//   %1 = SUM float32 [4,1] (%0) axes 1
//   %2 = STORE float32 [4,1] (%1) buffer 0 V([4,1]; [1,0]; 0; -)
//
// A text that can be read back is that of runtime/kernel_file.h.
QUERN_API std::string print_ast(const Ast& ast);

}  // namespace quern
