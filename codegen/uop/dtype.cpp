#include "quern/codegen/uop/dtype.h"

#include <limits>

namespace quern {

int64_t DType::min_int() const {
  if (!is_signed()) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - bits());
}

int64_t DType::max_int() const {
  if (is_bool()) return 1;
  if (bits() == 64) return std::numeric_limits<int64_t>::max();
  return (int64_t{1} << (is_signed() ? bits() - 1 : bits())) - 1;
}

std::string to_string(DType dtype) {
  std::string text(dtype.info().name);
  if (dtype.lanes != 1) text += "x" + std::to_string(dtype.lanes);
  return text;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (int i = static_cast<int>(Scalar::Bool); i <= static_cast<int>(Scalar::Float64); ++i)
    if (kScalarInfo[i].name == name) return DType(static_cast<Scalar>(i));
  return std::nullopt;
}

}  // namespace quern
