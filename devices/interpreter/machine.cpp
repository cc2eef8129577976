#include "quern/devices/interpreter/machine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "quern/codegen/error.h"
#include "quern/codegen/uop/eval.h"
#include "quern/codegen/uop/uop.h"

namespace quern::interpreter {
namespace {

using Kind = Instruction::Kind;

int64_t product(const int64_t (&sizes)[3]) { return sizes[0] * sizes[1] * sizes[2]; }

bool is_open(const Instruction& i, const int64_t* gate, int lane) {
  return i.gate_lanes == 0 || gate[i.gate_lanes > 1 ? lane : 0] != 0;
}

}  // namespace

Machine::Machine(const std::string& kernel, const Code& code, std::span<const MemoryRef> buffers,
                 std::span<const int32_t> vars, const Sizes& sizes)
    : kernel_(kernel), code_(code), sizes_(sizes), registers_(code.registers) {
  for (auto [reg, number] : code.variables) registers_[reg] = vars[static_cast<size_t>(number)];
  open_spaces(buffers);
}

void Machine::open_spaces(std::span<const MemoryRef> buffers) {
  bool many_items = product(sizes_.groups) * product(sizes_.locals) > 1;
  for (const MemoryUse& use : code_.memories) {
    Space& space = spaces_.emplace_back();
    auto itemsize = static_cast<size_t>(use.dtype.itemsize());
    space.elements = use.elements;
    if (use.is_local) {
      space.local.resize(static_cast<size_t>(use.elements) * itemsize);
      space.local_written.resize(space.local.size());
      space.data = space.local.data();
      space.written = space.local_written.data();
    } else if (const MemoryRef& ref = buffers[static_cast<size_t>(use.argument)]; ref.memory) {
      auto& memory = static_cast<TrackedMemory&>(*ref.memory);
      space.data = memory.data() + ref.offset;
      if (memory.written()) space.written = memory.written() + ref.offset;
      auto held = static_cast<int64_t>((memory.bytes() - ref.offset) / itemsize);
      space.elements = std::min(use.elements, held);
    } else {
      space.elements = 0;
    }
    if (many_items && use.is_written && !use.is_local)
      space.log = std::make_unique<AccessLog>(space.elements);
  }
}

// Local memory is another one in each group.
void Machine::start_group() {
  for (size_t k = 0; k < spaces_.size(); ++k) {
    if (!code_.memories[k].is_local) continue;
    std::ranges::fill(spaces_[k].local_written, uint8_t{0});
    if (product(sizes_.locals) > 1)
      spaces_[k].log = std::make_unique<AccessLog>(spaces_[k].elements);
  }
}

void Machine::run() {
  for (const int64_t* sizes : {sizes_.groups, sizes_.locals})
    if (std::any_of(sizes, sizes + 3, [](int64_t size) { return size <= 0; })) return;
  for (group_[2] = 0; group_[2] < sizes_.groups[2]; ++group_[2])
    for (group_[1] = 0; group_[1] < sizes_.groups[1]; ++group_[1])
      for (group_[0] = 0; group_[0] < sizes_.groups[0]; ++group_[0]) {
        start_group();
        run_group();
        ++group_number_;
      }
}

void Machine::run_group() {
  std::vector<Item> items;
  bool has_barriers = !code_.barrier_counters.empty();
  Item item{registers_, {group_number_, group_number_ * product(sizes_.locals), 0}, {0, 0, 0}, 0};
  for (item.local[2] = 0; item.local[2] < sizes_.locals[2]; ++item.local[2])
    for (item.local[1] = 0; item.local[1] < sizes_.locals[1]; ++item.local[1])
      for (item.local[0] = 0; item.local[0] < sizes_.locals[0]; ++item.local[0]) {
        // Without barriers one file of registers serves them all.
        if (has_barriers) {
          items.push_back(item);
        } else {
          item.next = 0;
          resume(item);
        }
        ++item.place.item;
      }
  if (has_barriers) run_group_with_barriers(items);
}

void Machine::run_group_with_barriers(std::vector<Item>& items) {
  auto end = static_cast<uint32_t>(code_.instructions.size());
  for (;;) {
    for (Item& item : items) resume(item);
    const Item& first = items[0];
    for (const Item& item : items) {
      const Item& waiting = first.next < end ? first : item;
      if (waiting.next >= end) continue;
      const Instruction& barrier = code_.instructions[waiting.next];
      auto differs = [&](uint32_t counter) {
        return item.registers[counter] != first.registers[counter];
      };
      if (item.next != first.next ||
          std::ranges::any_of(code_.barrier_counters[barrier.buffer], differs))
        fail(item, barrier,
             fmt::format("divergent barrier: work item {} is elsewhere", first.place.item));
    }
    if (first.next >= end) return;
    for (Item& item : items) {
      ++item.next;
      ++item.place.barriers;
    }
  }
}

void Machine::resume(Item& item) {
  int64_t* r = item.registers.data();
  auto end = static_cast<uint32_t>(code_.instructions.size());
  uint32_t next = item.next;
  while (next < end) {
    const Instruction& i = code_.instructions[next++];
    switch (i.kind) {
      case Kind::Alu:
        for (uint32_t lane = 0; lane < i.lanes; ++lane) {
          int64_t src[3];
          for (size_t k = 0; k < i.nsrc; ++k) src[k] = r[i.src[k] + lane];
          r[i.to + lane] = eval(i.op, i.operand, i.result, {src, i.nsrc});
        }
        break;
      case Kind::Copy: std::memmove(r + i.to, r + i.src[0], i.lanes * sizeof(int64_t)); break;
      case Kind::Splat: std::fill_n(r + i.to, i.lanes, r[i.src[0]]); break;
      case Kind::Permute:
        for (uint32_t lane = 0; lane < i.lanes; ++lane)
          r[i.to + lane] = r[i.src[0] + code_.lane_table[i.table + lane]];
        break;
      case Kind::Special:
        r[i.to] = special(item, static_cast<SpecialKind>(i.buffer), i.jump);
        break;
      case Kind::Range:
        r[i.to] = 0;
        if (r[i.src[0]] <= 0) next = i.jump;
        break;
      case Kind::End:
        if (++r[i.to] < r[i.src[0]]) next = i.jump;
        break;
      case Kind::If:
        if (!r[i.src[0]]) next = i.jump;
        break;
      case Kind::Barrier: item.next = next - 1; return;
      case Kind::Load: load(item, i); break;
      case Kind::Store: store(item, i); break;
    }
  }
  item.next = end;
}

int64_t Machine::special(const Item& item, SpecialKind kind, uint32_t dim) const {
  switch (kind) {
    case SpecialKind::Group:
    case SpecialKind::Task: return group_[dim];
    case SpecialKind::Local: return item.local[dim];
    case SpecialKind::Item: return group_[dim] * sizes_.locals[dim] + item.local[dim];
  }
  return 0;
}

int64_t Machine::checked_element(const Item& item, const Instruction& i, int lane) const {
  int64_t element = item.registers[i.src[0]];
  const Space& space = spaces_[i.buffer];
  if (__builtin_add_overflow(element, lane, &element) || element < 0 || element >= space.elements)
    fail(item, i,
         fmt::format("element {} is out of bounds of the {} that are there", element,
                     space.elements));
  return element;
}

void Machine::load(Item& item, const Instruction& i) {
  Space& space = spaces_[i.buffer];
  int64_t* r = item.registers.data();
  DType dtype = i.result.element();
  auto itemsize = static_cast<size_t>(dtype.itemsize());
  for (int lane = 0; lane < i.lanes; ++lane) {
    if (!is_open(i, r + i.src[1], lane)) {
      r[i.to + static_cast<uint32_t>(lane)] = r[i.src[2] + static_cast<uint32_t>(lane)];
      continue;
    }
    int64_t element = checked_element(item, i, lane);
    size_t offset = static_cast<size_t>(element) * itemsize;
    if (space.written && !space.written[offset])
      fail(item, i, fmt::format("element {} is read before anything was written there", element));
    if (space.log)
      if (int64_t other = space.log->read(element, item.place); other >= 0)
        fail(item, i, fmt::format("race: work item {} writes element {} too", other, element));
    uint64_t bits = 0;
    std::memcpy(&bits, space.data + offset, itemsize);
    r[i.to + static_cast<uint32_t>(lane)] = from_storage(dtype, bits);
  }
}

void Machine::store(Item& item, const Instruction& i) {
  Space& space = spaces_[i.buffer];
  int64_t* r = item.registers.data();
  auto itemsize = static_cast<size_t>(i.operand.itemsize());
  for (int lane = 0; lane < i.lanes; ++lane) {
    if (!is_open(i, r + i.src[2], lane)) continue;
    int64_t element = checked_element(item, i, lane);
    size_t offset = static_cast<size_t>(element) * itemsize;
    if (space.log)
      if (int64_t other = space.log->write(element, item.place); other >= 0)
        fail(item, i, fmt::format("race: work item {} touches element {} too", other, element));
    uint64_t bits = to_storage(i.operand, r[i.src[1] + static_cast<uint32_t>(lane)]);
    std::memcpy(space.data + offset, &bits, itemsize);
    if (space.written) std::memset(space.written + offset, 1, itemsize);
  }
}

void Machine::fail(const Item& item, const Instruction& i, const std::string& what) const {
  std::string where;
  if (i.kind == Kind::Load || i.kind == Kind::Store) {
    const MemoryUse& use = code_.memories[i.buffer];
    where = use.is_local ? " in local memory" : fmt::format(" in buffer {}", use.argument);
  }
  raise<DeviceError>("kernel {}, uop %{} ({}){}, work item {}: {}", kernel_, i.uop,
                     name(code_.ops[i.uop]), where, item.place.item, what);
}

}  // namespace quern::interpreter
