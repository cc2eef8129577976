#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "quern/devices/device.h"

namespace quern::interpreter {

// Bytes, of which it is known which ones have been written.
class TrackedMemory final : public Memory {
 public:
  // Throws DeviceError if there is not enough.
  explicit TrackedMemory(size_t bytes);
  // The caller's, taken as written.
  TrackedMemory(void* host, size_t bytes) : size_(bytes), data_(static_cast<std::byte*>(host)) {}

  size_t bytes() const override { return size_; }
  // Null for memory of its own, so that no write goes unseen.
  void* host() override { return written_ ? nullptr : data_; }
  void read(size_t offset, std::span<std::byte> to) override;
  void write(size_t offset, std::span<const std::byte> from) override;

  std::byte* data() { return data_; }
  // A flag for each byte, or null if all count as written.
  uint8_t* written() { return written_.get(); }

 private:
  struct Free {
    void operator()(void* p) const;
  };
  size_t size_;
  std::unique_ptr<std::byte, Free> owned_;
  std::unique_ptr<uint8_t, Free> written_;
  std::byte* data_ = nullptr;
};

// A work item at a point of its execution.
struct Place {
  int64_t group = 0;
  int64_t item = 0;      // among all items of the launch
  int64_t barriers = 0;  // that its group has passed
};

// Who touched each element of a memory, to find races.
class AccessLog {
 public:
  explicit AccessLog(int64_t elements) : last_(static_cast<size_t>(elements)) {}

  // An item that has touched the element without an order between the two accesses, of which one is
  // a write; -1 if there is none.
  int64_t read(int64_t element, const Place& by);
  int64_t write(int64_t element, const Place& by);

 private:
  struct Access {
    int64_t item = -1;
    int64_t group = -1;
    int64_t barriers = -1;
    bool is_unordered(const Place& p) const {
      return item >= 0 && item != p.item && (group != p.group || barriers == p.barriers);
    }
  };
  // Two readers are enough to know of one beside the writer; a reader of another group stays, since
  // no barrier orders it.
  struct Element {
    Access writer, reader, other_reader;
  };
  std::vector<Element> last_;
};

}  // namespace quern::interpreter
