#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace quern {

// Bump allocator for the nodes of one graph: everything is freed at once, destructors do not run.
class Arena {
 public:
  void* allocate(size_t bytes, size_t align) {
    size_t start = (used_ + align - 1) & ~(align - 1);
    if (blocks_.empty() || start + bytes > size_) {
      grow(bytes);
      start = 0;
    }
    used_ = start + bytes;
    return blocks_.back().get() + start;
  }

  template <class T>
  std::span<const T> copy(std::span<const T> values) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (values.empty()) return {};
    T* data = static_cast<T*>(allocate(values.size_bytes(), alignof(T)));
    for (size_t i = 0; i < values.size(); ++i) data[i] = values[i];
    return {data, values.size()};
  }

 private:
  void grow(size_t bytes) {
    size_ = blocks_.empty() ? 16 << 10 : size_ * 2 > (1 << 20) ? 1 << 20 : size_ * 2;
    if (size_ < bytes) size_ = bytes;
    blocks_.push_back(std::make_unique<std::byte[]>(size_));
  }

  std::vector<std::unique_ptr<std::byte[]>> blocks_;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace quern
