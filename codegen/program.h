#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quern/codegen/ast/param.h"
#include "quern/codegen/schedule/opt.h"
#include "quern/codegen/shape/sint.h"
#include "quern/codegen/target.h"

namespace quern {

// Text for one target, and all that a launch has to know. Immutable; may be shared between threads.
struct Program {
  std::string name;    // of the kernel's function: [A-Za-z0-9_]+
  std::string source;  // in the target's language
  Target target;
  std::vector<BufferParam> buffers;
  std::vector<VarParam> vars;

  // Launch dimensions. On a target with local memory: groups and work items of each dimension, or
  // with a free local size all work items, which groups of any size that divides them may hold. On
  // the cpu: global_size[0] is the number of tasks, which may run in any order and on any thread.
  SInt global_size[3] = {1, 1, 1};
  int64_t local_size[3] = {1, 1, 1};
  bool has_free_local_size = false;

  // Estimates from the AST: one operation an element of each distinct Alu node; the bytes of each
  // buffer once.
  SInt flops = 0;
  SInt bytes = 0;

  std::vector<Opt> applied_opts;
};

}  // namespace quern
