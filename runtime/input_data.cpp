#include "quern/runtime/input_data.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

// Every value is one of these, chosen by h mod 32.
constexpr uint64_t kValues = 32;
using Table = std::array<uint64_t, kValues>;

int64_t lane_of(DType dtype, InputKind kind, int64_t h) {
  bool positive = kind == InputKind::Positive;
  if (dtype.is_float()) return float_bits(static_cast<double>(positive ? h % 16 + 1 : h - 16) / 8);
  if (dtype.is_bool()) return h & 1;
  return dtype.is_signed() && !positive ? h % 16 - 8 : h % 16;
}

uint64_t hash(uint64_t number, uint64_t element) {
  uint64_t z = number * 0x9E3779B97F4A7C15u + element + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return (z ^ (z >> 31)) >> 40;
}

template <class T>
void fill(std::span<std::byte> to, uint64_t number, uint64_t begin, const Table& table) {
  std::array<T, kValues> values;
  for (size_t i = 0; i < kValues; ++i) values[i] = static_cast<T>(table[i]);
  T* elements = reinterpret_cast<T*>(to.data());
  for (size_t i = 0; i < to.size() / sizeof(T); ++i)
    elements[i] = values[hash(number, begin + i) % kValues];
}

}  // namespace

void fill_input(Buffer& buffer, uint32_t number, InputKind kind) {
  constexpr int64_t kChunk = 1 << 16;
  DType dtype = buffer.dtype();
  Table table;
  for (uint64_t h = 0; h < kValues; ++h)
    table[h] = to_storage(dtype, lane_of(dtype, kind, static_cast<int64_t>(h)));
  std::vector<std::byte> bytes;
  for (int64_t begin = 0; begin < buffer.size(); begin += kChunk) {
    Buffer part = buffer.slice(begin, std::min(kChunk, buffer.size() - begin));
    bytes.resize(part.bytes());
    auto first = static_cast<uint64_t>(begin);
    switch (dtype.itemsize()) {
      case 1: fill<uint8_t>(bytes, number, first, table); break;
      case 2: fill<uint16_t>(bytes, number, first, table); break;
      case 4: fill<uint32_t>(bytes, number, first, table); break;
      default: fill<uint64_t>(bytes, number, first, table); break;
    }
    part.write(bytes);
  }
}

}  // namespace quern
