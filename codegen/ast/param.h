#pragma once

#include <cstdint>
#include <string>

#include "quern/codegen/uop/dtype.h"

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

}  // namespace quern
