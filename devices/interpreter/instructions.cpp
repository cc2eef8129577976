#include "quern/devices/interpreter/instructions.h"

#include <unordered_map>
#include <utility>

#include "quern/codegen/error.h"

namespace quern::interpreter {
namespace {

using Kind = Instruction::Kind;

class CodeMaker {
 public:
  explicit CodeMaker(const LinearUOps& uops) : uops_(uops) {}

  Code make() {
    for (UOp u : uops_) {
      current_ = u;
      code_.ops.push_back(u->op);
      add(u);
    }
    return std::move(code_);
  }

 private:
  uint32_t at() const { return static_cast<uint32_t>(code_.instructions.size()); }

  uint32_t new_registers(int lanes, int64_t value = 0) {
    auto first = static_cast<uint32_t>(code_.registers.size());
    code_.registers.insert(code_.registers.end(), static_cast<size_t>(lanes), value);
    return first;
  }

  // An ASSIGN stands for its accumulator.
  uint32_t reg(UOp u) const { return register_.at(u->op == Op::ASSIGN ? u->src(0) : u); }

  Instruction& emit(Kind kind, UOp u) {
    Instruction& i = code_.instructions.emplace_back();
    i.kind = kind;
    i.op = u->op;
    i.result = u->dtype;
    i.lanes = u->dtype.lanes;
    i.uop = static_cast<uint32_t>(code_.ops.size() - 1);
    return i;
  }

  uint32_t define(UOp u) { return register_[u] = new_registers(u->lanes()); }

  void add(UOp u) {
    switch (u->op) {
      case Op::CONST: register_[u] = new_registers(u->lanes(), u->arg); break;
      case Op::VCONST:
        define(u);
        std::copy(u->args.begin(), u->args.end(), code_.registers.begin() + reg(u));
        break;
      case Op::DEFINE_VAR: code_.variables.push_back({define(u), u->arg}); break;
      case Op::DEFINE_GLOBAL: add_memory(u, {false, u->arg, u->args[0], u->dtype, false}); break;
      case Op::DEFINE_LOCAL: add_memory(u, {true, 0, u->args[0], u->dtype, false}); break;
      case Op::DEFINE_ACC: copy(u->src(0), define(u)); break;
      case Op::ASSIGN: copy(u->src(1), reg(u)); break;
      case Op::SPECIAL: {
        uint32_t to = define(u);
        Instruction& i = emit(Kind::Special, u);
        i.to = to;
        i.buffer = static_cast<uint32_t>(u->args[0]);
        i.jump = static_cast<uint32_t>(u->arg);
        break;
      }
      case Op::RANGE:
      case Op::IF: open(u); break;
      case Op::END:
      case Op::ENDIF: close(u->src(0)); break;
      case Op::BARRIER: barrier(u); break;
      case Op::LOAD: load(u); break;
      case Op::STORE: store(u); break;
      case Op::VECTORIZE: vectorize(u); break;
      case Op::GEP: permute(u); break;
      default:
        if (!is_alu(u->op)) raise<CompileError>("interpreter: {} cannot be executed", name(u->op));
        alu(u);
    }
  }

  void add_memory(UOp u, MemoryUse use) {
    memory_[u] = static_cast<uint32_t>(code_.memories.size());
    code_.memories.push_back(use);
  }

  void copy(UOp from, uint32_t to) {
    uint32_t src = reg(from);
    Instruction& i = emit(Kind::Copy, current_);
    i.lanes = from->dtype.lanes;
    i.src[0] = src;
    i.to = to;
  }

  void open(UOp u) {
    uint32_t src = reg(u->src(0));
    uint32_t to = u->op == Op::RANGE ? define(u) : Instruction::kNone;
    open_.push_back({u, at()});
    Instruction& i = emit(u->op == Op::RANGE ? Kind::Range : Kind::If, u);
    i.src[0] = src;
    i.to = to;
  }

  void close(UOp head) {
    auto [opened, begin] = open_.back();
    open_.pop_back();
    if (head->op == Op::RANGE) {
      Instruction& i = emit(Kind::End, head);
      i.src[0] = reg(head->src(0));
      i.to = reg(head);
      i.jump = begin + 1;
    }
    code_.instructions[begin].jump = at();
  }

  void barrier(UOp u) {
    std::vector<uint32_t> counters;
    for (const auto& [head, begin] : open_)
      if (head->op == Op::RANGE) counters.push_back(reg(head));
    emit(Kind::Barrier, u).buffer = static_cast<uint32_t>(code_.barrier_counters.size());
    code_.barrier_counters.push_back(std::move(counters));
  }

  // The element type may be another one of the same size.
  uint32_t memory_of(UOp access, DType element) const {
    UOp memory = access->src(0);
    if (memory->dtype.itemsize() != element.itemsize())
      raise<CompileError>("interpreter: {} of {} in memory of {}", name(access->op),
                          to_string(element), to_string(memory->dtype));
    return memory_.at(memory);
  }

  void load(UOp u) {
    uint32_t memory = memory_of(u, u->dtype.element()), to = define(u);
    Instruction& i = emit(Kind::Load, u);
    i.buffer = memory;
    i.to = to;
    i.src[0] = reg(u->src(1));
    if (UOp gate = u->gate()) {
      i.gate_lanes = static_cast<uint8_t>(gate->lanes() > 1 ? 2 : 1);
      i.src[1] = reg(gate);
      i.src[2] = reg(u->alternative());
    }
  }

  void store(UOp u) {
    UOp value = u->src(2);
    uint32_t memory = memory_of(u, value->dtype.element());
    code_.memories[memory].is_written = true;
    Instruction& i = emit(Kind::Store, u);
    i.buffer = memory;
    i.lanes = value->dtype.lanes;
    i.operand = value->dtype.element();
    i.src[0] = reg(u->src(1));
    i.src[1] = reg(value);
    if (UOp gate = u->gate()) {
      i.gate_lanes = static_cast<uint8_t>(gate->lanes() > 1 ? 2 : 1);
      i.src[2] = reg(gate);
    }
  }

  void vectorize(UOp u) {
    uint32_t to = define(u);
    if (u->nsrc == 1 && u->src(0)->lanes() == 1) {
      uint32_t src = reg(u->src(0));
      Instruction& i = emit(Kind::Splat, u);
      i.src[0] = src;
      i.to = to;
      return;
    }
    for (UOp s : u->src()) {
      copy(s, to);
      to += static_cast<uint32_t>(s->lanes());
    }
  }

  void permute(UOp u) {
    uint32_t to = define(u), src = reg(u->src(0));
    Instruction& i = emit(Kind::Permute, u);
    i.src[0] = src;
    i.to = to;
    i.table = static_cast<uint32_t>(code_.lane_table.size());
    for (int64_t lane : u->args) code_.lane_table.push_back(static_cast<uint16_t>(lane));
  }

  void alu(UOp u) {
    uint32_t to = define(u);
    Instruction& i = emit(Kind::Alu, u);
    i.nsrc = static_cast<uint8_t>(u->nsrc);
    i.operand = u->src().back()->dtype.element();
    i.result = u->dtype.element();
    i.to = to;
    for (size_t k = 0; k < u->nsrc; ++k) i.src[k] = reg(u->src(k));
  }

  const LinearUOps& uops_;
  Code code_;
  UOp current_ = nullptr;
  std::unordered_map<UOp, uint32_t> register_, memory_;
  std::vector<std::pair<UOp, uint32_t>> open_;
};

}  // namespace

Code make_code(const LinearUOps& uops) { return CodeMaker(uops).make(); }

}  // namespace quern::interpreter
