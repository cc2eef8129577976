#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quern/codegen/uop/uop.h"
#include "quern/devices/interpreter/instructions.h"
#include "quern/devices/interpreter/memory.h"

namespace quern::interpreter {

// One launch: runs the work items of each group between barriers, group after group.
class Machine {
 public:
  struct Sizes {
    int64_t groups[3];  // or tasks, in the first
    int64_t locals[3];
  };

  Machine(const std::string& kernel, const Code& code, std::span<const MemoryRef> buffers,
          std::span<const int32_t> vars, const Sizes& sizes);

  // Throws DeviceError for what interpreter.h lists.
  void run();

 private:
  // What an access needs of a buffer or of local memory.
  struct Space {
    std::byte* data = nullptr;
    uint8_t* written = nullptr;  // by byte; null if all is
    int64_t elements = 0;
    std::unique_ptr<AccessLog> log;  // null if no two items can meet
    std::vector<std::byte> local;    // of local memory
    std::vector<uint8_t> local_written;
  };
  struct Item {
    std::vector<int64_t> registers;
    Place place;
    int64_t local[3];
    uint32_t next = 0;
  };

  void open_spaces(std::span<const MemoryRef> buffers);
  void start_group();
  void run_group();
  void run_group_with_barriers(std::vector<Item>& items);
  // Runs to the next barrier or the end.
  void resume(Item& item);
  void load(Item& item, const Instruction& i);
  void store(Item& item, const Instruction& i);
  int64_t special(const Item& item, SpecialKind kind, uint32_t dim) const;
  int64_t checked_element(const Item& item, const Instruction& i, int lane) const;
  [[noreturn]] void fail(const Item& item, const Instruction& i, const std::string& what) const;

  const std::string& kernel_;
  const Code& code_;
  Sizes sizes_;
  std::vector<int64_t> registers_;  // at the start of an item
  std::vector<Space> spaces_;       // by Instruction::buffer
  int64_t group_[3] = {0, 0, 0};
  int64_t group_number_ = 0;
};

}  // namespace quern::interpreter
