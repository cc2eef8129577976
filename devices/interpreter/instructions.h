#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "quern/codegen/uop/dtype.h"
#include "quern/codegen/uop/linear.h"
#include "quern/codegen/uop/op.h"

namespace quern::interpreter {

// One step of a work item. Values live in a file of 64-bit registers, a lane each; `to` and `src`
// are the numbers of first lanes.
struct Instruction {
  static constexpr uint32_t kNone = UINT32_MAX;

  enum class Kind : uint8_t {
    Alu,      // op on each lane
    Copy,     // lanes of src[0] to `to`
    Splat,    // one lane of src[0] to all of `to`
    Permute,  // lanes `lane_table` of src[0]
    Special,  // the work item's place: special kind in `buffer`, dimension in `jump`
    Range,    // 0 to `to`; past its End, at `jump`, if src[0] is not positive
    End,      // counts `to` up and goes back to `jump` while it is below src[0]
    If,       // past its EndIf, at `jump`, unless src[0]
    Barrier,
    Load,   // buffer `buffer` at src[0]; gate src[1] and alternative src[2], or kNone
    Store,  // src[1] to buffer `buffer` at src[0]; gate src[2], or kNone
  };

  Kind kind = Kind::Copy;
  Op op = Op::ADD;
  uint8_t nsrc = 0;
  uint8_t gate_lanes = 0;
  uint16_t lanes = 1;
  DType operand, result;
  uint32_t to = kNone;
  std::array<uint32_t, 3> src = {kNone, kNone, kNone};
  uint32_t buffer = 0;
  uint32_t jump = 0;
  uint32_t table = 0;  // Permute: where its lanes stand in Code::lane_table
  uint32_t uop = 0;    // the number of the uop that it comes from
};

// Memory that the code names: a buffer of the launch, or local memory of a group.
struct MemoryUse {
  bool is_local = false;
  int64_t argument = 0;  // which buffer of the launch
  int64_t elements = 0;
  DType dtype;
  bool is_written = false;
};

// A list of uops made ready to run.
struct Code {
  std::vector<Instruction> instructions;
  std::vector<int64_t> registers;  // their initial content: constants stand in it
  std::vector<MemoryUse> memories;
  std::vector<uint16_t> lane_table;
  std::vector<std::pair<uint32_t, int64_t>> variables;  // register, number of the variable
  std::vector<std::vector<uint32_t>>
      barrier_counters;  // by Barrier's `buffer`: of the loops around it
  std::vector<Op> ops;   // of each uop, for messages
};

// Throws CompileError for what cannot be executed.
Code make_code(const LinearUOps& uops);

}  // namespace quern::interpreter
