#include "quern/devices/buffer.h"

#include <utility>

namespace quern {
namespace {

size_t bytes_of(DType dtype, int64_t size) {
  if (dtype.lanes != 1 || dtype.bits() == 0 || dtype.is_index())
    raise<ArgumentError>("a buffer cannot hold elements of type {}", to_string(dtype));
  int64_t bytes = 0;
  if (size < 0 || __builtin_mul_overflow(size, dtype.itemsize(), &bytes))
    raise<ArgumentError>("a buffer cannot have {} elements of type {}", size, to_string(dtype));
  return static_cast<size_t>(bytes);
}

}  // namespace

Buffer::Buffer(std::shared_ptr<Device> device, DType dtype, int64_t size)
    : device_(std::move(device)), dtype_(dtype), size_(size) {
  memory_.memory = device_->allocate(bytes_of(dtype, size));
}

Buffer Buffer::wrap(std::shared_ptr<Device> device, DType dtype, void* data, int64_t size) {
  size_t bytes = bytes_of(dtype, size);
  if (!data && bytes > 0) raise<ArgumentError>("cannot wrap {} bytes at a null pointer", bytes);
  if (reinterpret_cast<uintptr_t>(data) % static_cast<size_t>(dtype.itemsize()) != 0)
    raise<ArgumentError>("cannot wrap {} at {}: elements must be aligned to {} bytes",
                         to_string(dtype), data, dtype.itemsize());
  Buffer buffer;
  buffer.memory_.memory = device->wrap(data, bytes);
  buffer.device_ = std::move(device);
  buffer.dtype_ = dtype;
  buffer.size_ = size;
  return buffer;
}

Buffer Buffer::wrap(std::shared_ptr<Device> device, DType dtype, const void* data, int64_t size) {
  Buffer buffer = wrap(std::move(device), dtype, const_cast<void*>(data), size);
  buffer.read_only_ = true;
  return buffer;
}

Buffer Buffer::slice(int64_t begin, int64_t size) const {
  if (begin < 0 || size < 0 || begin > size_ || size > size_ - begin)
    raise<ArgumentError>("slice of {} elements from element {} on leaves {}", size, begin,
                         describe());
  Buffer part = *this;
  part.size_ = size;
  part.memory_.offset += static_cast<size_t>(begin) * static_cast<size_t>(dtype_.itemsize());
  return part;
}

void Buffer::read(std::span<std::byte> to) const {
  if (to.size() != bytes())
    raise<ArgumentError>("read of {} bytes from {}, which has {}", to.size(), describe(), bytes());
  if (!to.empty()) memory_.memory->read(memory_.offset, to);
}

void Buffer::write(std::span<const std::byte> from) {
  if (read_only_) raise<ArgumentError>("{} is read-only", describe());
  if (from.size() != bytes())
    raise<ArgumentError>("write of {} bytes to {}, which has {}", from.size(), describe(), bytes());
  if (!from.empty()) memory_.memory->write(memory_.offset, from);
}

std::string Buffer::describe() const { return fmt::format("{}[{}]", to_string(dtype_), size_); }

void Buffer::check_type(Scalar scalar) const {
  bool is_half = dtype_.is_float() && dtype_.bits() == 16;
  bool fits = dtype_.scalar == scalar || (is_half && scalar == Scalar::UInt16) ||
              (dtype_.is_bool() && scalar == Scalar::UInt8);
  if (!fits)
    raise<ArgumentError>("{} holds no elements of type {}", describe(), to_string(DType(scalar)));
}

}  // namespace quern
