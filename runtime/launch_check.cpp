#include "quern/runtime/launch_check.h"

#include <algorithm>
#include <string>

#include "quern/codegen/error.h"

namespace quern {
namespace {

std::string wanted_text(const BufferParam& param) {
  return fmt::format("{}[{}]", to_string(param.dtype), param.size);
}

void check_buffer(const Program& program, const Device& device, size_t i, const Buffer& buffer) {
  const BufferParam& param = program.buffers[i];
  auto where = [&] { return fmt::format("kernel {}, buffer {}", program.name, i); };
  if (!buffer.device())
    raise<ArgumentError>("{}: no buffer; expected {}", where(), wanted_text(param));
  if (buffer.device().get() != &device)
    raise<ArgumentError>(
        "{}: the buffer belongs to another device, of name {}; expected the kernel's, {}", where(),
        buffer.device()->name(), device.name());
  if (buffer.dtype() != param.dtype || buffer.size() < param.size)
    raise<ArgumentError>("{}: expected {} or more elements, found {}", where(), wanted_text(param),
                         buffer.describe());
  if (param.written && buffer.is_read_only())
    raise<ArgumentError>("{}: the kernel writes it, but the buffer is read-only", where());
}

struct Extent {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

// Of elements that the kernel may touch. Memory that the host cannot see has no addresses that
// could be compared with others', so it counts from 0.
Extent extent(const BufferParam& param, const Buffer& buffer) {
  const MemoryRef& ref = buffer.memory();
  uintptr_t begin = reinterpret_cast<uintptr_t>(ref.memory->host()) + ref.offset;
  return {begin,
          begin + static_cast<size_t>(param.size) * static_cast<size_t>(param.dtype.itemsize())};
}

bool share_memory(const BufferParam& p, const Buffer& a, const BufferParam& q, const Buffer& b) {
  bool comparable = a.memory().memory == b.memory().memory ||
                    (a.memory().memory->host() && b.memory().memory->host());
  if (!comparable) return false;
  Extent x = extent(p, a), y = extent(q, b);
  return x.begin < y.end && y.begin < x.end && x.begin < x.end && y.begin < y.end;
}

}  // namespace

void check_buffers(const Program& program, const Device& device, std::span<const Buffer> buffers) {
  if (buffers.size() != program.buffers.size())
    raise<ArgumentError>("kernel {}: expected {} buffers, found {}", program.name,
                         program.buffers.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) check_buffer(program, device, i, buffers[i]);
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (!program.buffers[i].written) continue;
    for (size_t j = 0; j < buffers.size(); ++j)
      if (i != j && share_memory(program.buffers[i], buffers[i], program.buffers[j], buffers[j]))
        raise<ArgumentError>(
            "kernel {}: buffer {} is written and shares memory with buffer {}; to update in place, "
            "load from the buffer that is stored to",
            program.name, i, j);
  }
}

std::vector<int64_t> order_vars(const Program& program, std::span<const VarValue> vars) {
  std::vector<int64_t> values(program.vars.size());
  std::vector<bool> given(program.vars.size());
  for (const VarValue& var : vars) {
    auto found = std::ranges::find(program.vars, var.name, &VarParam::name);
    if (found == program.vars.end())
      raise<ArgumentError>("kernel {}: it has no variable '{}'", program.name, var.name);
    auto i = static_cast<size_t>(found - program.vars.begin());
    if (given[i])
      raise<ArgumentError>("kernel {}: variable '{}' is given twice", program.name, var.name);
    if (var.value < found->min || var.value > found->max)
      raise<ArgumentError>("kernel {}: variable '{}' is {}; expected a value from {} to {}",
                           program.name, var.name, var.value, found->min, found->max);
    given[i] = true;
    values[i] = var.value;
  }
  for (size_t i = 0; i < given.size(); ++i) {
    const VarParam& param = program.vars[i];
    if (!given[i])
      raise<ArgumentError>("kernel {}: variable '{}' has no value; expected one from {} to {}",
                           program.name, param.name, param.min, param.max);
  }
  return values;
}

}  // namespace quern
