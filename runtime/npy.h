#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/uop/dtype.h"

namespace quern {

// An array of NumPy's .npy format (version 1 to 3): little endian, row-major. bfloat16, for which
// NumPy has no type, is "<V2", as ml_dtypes writes it.
struct QUERN_API NpyArray {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;

  int64_t size() const;  // elements
};

// Throws FileError for a file that is unreadable, cut short, longer than its shape says, of a type
// that Quern lacks, big endian or in Fortran order.
QUERN_API NpyArray read_npy(const std::string& path);
// The same for the content of a file; `path` is for messages.
QUERN_API NpyArray parse_npy(std::string_view content, const std::string& path);

// Writes a new file in the place of one of that name, or leaves that as it was and throws
// FileError.
QUERN_API void write_npy(const std::string& path, DType dtype, std::span<const int64_t> shape,
                         std::span<const std::byte> data);

}  // namespace quern
