#include "quern/runtime/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

std::string text(DType dtype, int64_t lane) {
  if (dtype.is_float()) return fmt::format("{}", bits_float(lane));
  if (dtype.scalar == Scalar::UInt64) return fmt::format("{}", static_cast<uint64_t>(lane));
  return fmt::format("{}", lane);
}

int64_t lane_at(DType dtype, const std::byte* data) {
  uint64_t bits = 0;
  std::memcpy(&bits, data, static_cast<size_t>(dtype.itemsize()));
  return from_storage(dtype, bits);
}

bool agree(double found, double expected, double tolerance) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected)) return found == expected;
  return std::fabs(found - expected) <= tolerance;
}

// The distance from 1 to the next number of the type.
double epsilon(DType dtype) {
  switch (dtype.scalar) {
    case Scalar::Float16: return 0x1p-10;
    case Scalar::BFloat16: return 0x1p-7;
    case Scalar::Float32: return 0x1p-23;
    default: return 0x1p-52;
  }
}

// Of the finite elements.
double largest(DType dtype, std::span<const std::byte> data) {
  double found = 0;
  for (size_t i = 0; i < data.size(); i += static_cast<size_t>(dtype.itemsize())) {
    double value = std::fabs(bits_float(lane_at(dtype, &data[i])));
    if (std::isfinite(value)) found = std::max(found, value);
  }
  return found;
}

}  // namespace

std::optional<std::string> compare(std::span<const Expectation> expect,
                                   std::span<const Buffer> buffers) {
  for (const Expectation& expectation : expect) {
    const Buffer& buffer = buffers[expectation.buffer];
    DType dtype = buffer.dtype();
    for (const Expectation::Sample& sample : expectation.samples) {
      std::byte data[8];
      buffer.slice(sample.at, 1).read(std::span(data).first(static_cast<size_t>(dtype.itemsize())));
      int64_t found = lane_at(dtype, data);
      bool ok = dtype.is_float()
                    ? agree(bits_float(found), bits_float(sample.value), sample.tolerance)
                    : found == sample.value;
      if (!ok)
        return fmt::format("buffer {}, element {}: expected {} (tolerance {}), found {}",
                           expectation.buffer, sample.at, text(dtype, sample.value),
                           sample.tolerance, text(dtype, found));
    }
  }
  return std::nullopt;
}

std::optional<std::string> compare(const Buffer& found, const Buffer& expected, double ulps) {
  std::vector<std::byte> a(found.bytes()), b(expected.bytes());
  found.read(a);
  expected.read(b);
  if (a == b) return std::nullopt;
  DType dtype = found.dtype();
  auto itemsize = static_cast<size_t>(dtype.itemsize());
  double tolerance = dtype.is_float() ? ulps * epsilon(dtype) * largest(dtype, b) : 0;
  for (size_t i = 0; i < a.size(); i += itemsize) {
    int64_t x = lane_at(dtype, &a[i]), y = lane_at(dtype, &b[i]);
    if (x == y || (dtype.is_float() && agree(bits_float(x), bits_float(y), tolerance))) continue;
    return fmt::format("element {}: expected {}, found {}", i / itemsize, text(dtype, y),
                       text(dtype, x));
  }
  return std::nullopt;
}

}  // namespace quern
