#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/error.h"
#include "quern/codegen/uop/dtype.h"
#include "quern/devices/device.h"

namespace quern {

// The scalar type that a C++ type is passed as. Half and bfloat16 have no standard C++ type: their
// elements go in and out as uint16_t bit patterns.
template <class T>
constexpr Scalar scalar_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) return Scalar::Bool;
  else if constexpr (std::is_same_v<U, float>) return Scalar::Float32;
  else if constexpr (std::is_same_v<U, double>) return Scalar::Float64;
  else {
    static_assert(std::is_integral_v<U>, "no Quern type holds this");
    constexpr bool kSigned = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return kSigned ? Scalar::Int8 : Scalar::UInt8;
    else if constexpr (sizeof(U) == 2) return kSigned ? Scalar::Int16 : Scalar::UInt16;
    else if constexpr (sizeof(U) == 4) return kSigned ? Scalar::Int32 : Scalar::UInt32;
    else return kSigned ? Scalar::Int64 : Scalar::UInt64;
  }
}

// A flat array of elements on a device: a cheap handle; copies and slices share the memory, which
// is freed with the last of them (and of the launches in flight). Thread safe like a shared_ptr;
// accesses to the elements are the caller's to order.
class QUERN_API Buffer {
 public:
  // No memory, no elements.
  Buffer() = default;

  // Uninitialized. Throws ArgumentError for a negative size or one of which the bytes overflow, and
  // DeviceError if the device has not enough.
  Buffer(std::shared_ptr<Device> device, DType dtype, int64_t size);

  // Elements in memory of the caller, who keeps it alive as long as the Buffer and its slices, and
  // does not move it. Nothing is copied; a device that cannot use the memory in place refuses it by
  // DeviceError. `data` must be aligned to its element.
  static Buffer wrap(std::shared_ptr<Device> device, DType dtype, void* data, int64_t size);
  // The same for memory that must not be written: such a buffer cannot be an output.
  static Buffer wrap(std::shared_ptr<Device> device, DType dtype, const void* data, int64_t size);
  template <class T, size_t N>
  static Buffer wrap(std::shared_ptr<Device> device, std::span<T, N> data) {
    return wrap(std::move(device), scalar_of<T>(), data.data(), static_cast<int64_t>(data.size()));
  }

  // A new buffer with a copy of the elements of a vector, array or span.
  template <std::ranges::contiguous_range R>
  static Buffer copy_of(std::shared_ptr<Device> device, const R& data) {
    Scalar scalar = scalar_of<std::ranges::range_value_t<R>>();
    Buffer buffer(std::move(device), scalar, static_cast<int64_t>(std::ranges::size(data)));
    buffer.copy_from(data);
    return buffer;
  }

  // Elements begin .. begin + size - 1 of the same memory. Throws ArgumentError if they leave it.
  Buffer slice(int64_t begin, int64_t size) const;

  const std::shared_ptr<Device>& device() const { return device_; }
  DType dtype() const { return dtype_; }
  int64_t size() const { return size_; }  // in elements
  size_t bytes() const {
    return static_cast<size_t>(size_) * static_cast<size_t>(dtype_.itemsize());
  }
  bool is_read_only() const { return read_only_; }
  const MemoryRef& memory() const { return memory_; }

  // Copies all elements between the buffer and the host. The number of bytes must be bytes();
  // throws ArgumentError otherwise, and for writing to a read-only buffer.
  void read(std::span<std::byte> to) const;
  void write(std::span<const std::byte> from);

  // The same with elements, whose type must be the buffer's; uint16_t for half and bfloat16, and
  // for bool also uint8_t (which std::vector can hold), of which 0 is false.
  template <class T, size_t N>
  void copy_to(std::span<T, N> to) const {
    check_type(scalar_of<T>());
    read(std::as_writable_bytes(to));
  }
  template <std::ranges::contiguous_range R>
  void copy_from(const R& from) {
    check_type(scalar_of<std::ranges::range_value_t<R>>());
    write(std::as_bytes(std::span(std::ranges::data(from), std::ranges::size(from))));
  }
  template <class T>
  std::vector<T> to_vector() const {
    std::vector<T> data(static_cast<size_t>(size_));
    copy_to(std::span(data));
    return data;
  }

  // "float32[64]", for messages.
  std::string describe() const;

 private:
  void check_type(Scalar scalar) const;

  std::shared_ptr<Device> device_;
  DType dtype_;
  int64_t size_ = 0;
  bool read_only_ = false;
  MemoryRef memory_;
};

}  // namespace quern
