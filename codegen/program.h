#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/dtype.h"
#include "codegen/opt.h"
#include "codegen/sint.h"
#include "codegen/target.h"
#include "codegen/uop.h"

namespace quern {

// An argument of a kernel: where it lies in the launch's buffer list is its position in `buffers`.
struct BufferParam {
  DType dtype;           // what the memory holds
  int64_t size = 0;      // elements that the kernel may touch, over all values of the variables
  int image_height = 0;  // of an image buffer, in texels of 4 elements; 0 for a plain one
  int image_width = 0;
  bool written = false;
  bool read = false;
};

struct VarParam {
  std::string name;
  int64_t min = 0;
  int64_t max = 0;
};

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
