#include "quern/devices/interpreter/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "quern/codegen/error.h"

namespace quern::interpreter {

void TrackedMemory::Free::operator()(void* p) const { std::free(p); }

TrackedMemory::TrackedMemory(size_t bytes) : size_(bytes) {
  constexpr size_t kAlign = 64;
  size_t rounded = (std::max<size_t>(bytes, 1) + kAlign - 1) & ~(kAlign - 1);
  if (rounded >= bytes) {
    owned_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlign, rounded)));
    written_.reset(static_cast<uint8_t*>(std::calloc(rounded, 1)));
  }
  if (!owned_ || !written_)
    raise<DeviceError>("device interpreter: cannot allocate {} bytes", bytes);
  data_ = owned_.get();
}

void TrackedMemory::read(size_t offset, std::span<std::byte> to) {
  if (!to.empty()) std::memcpy(to.data(), data_ + offset, to.size());
}

void TrackedMemory::write(size_t offset, std::span<const std::byte> from) {
  if (from.empty()) return;
  std::memcpy(data_ + offset, from.data(), from.size());
  if (written_) std::memset(written_.get() + offset, 1, from.size());
}

int64_t AccessLog::read(int64_t element, const Place& by) {
  Element& e = last_[static_cast<size_t>(element)];
  if (e.writer.is_unordered(by)) return e.writer.item;
  Access now{by.item, by.group, by.barriers};
  if (e.reader.item != by.item) {
    bool keeps_other = e.other_reader.item >= 0 && e.other_reader.group != by.group;
    if (!keeps_other) e.other_reader = e.reader;
  }
  e.reader = now;
  return -1;
}

int64_t AccessLog::write(int64_t element, const Place& by) {
  Element& e = last_[static_cast<size_t>(element)];
  for (const Access& access : {e.writer, e.reader, e.other_reader})
    if (access.is_unordered(by)) return access.item;
  e.writer = {by.item, by.group, by.barriers};
  return -1;
}

}  // namespace quern::interpreter
