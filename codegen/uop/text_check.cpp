#include "quern/codegen/uop/text_check.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "quern/codegen/uop/eval.h"

namespace quern::uop_text {
namespace {

const DType kVoid;

bool is_void(UOp u) { return u->dtype == kVoid; }
bool is_number(DType t) { return t.scalar != Scalar::Void; }
bool is_scalar_int(DType t) { return t.is_int() && t.lanes == 1; }
bool is_memory(UOp u) { return u->op == Op::DEFINE_GLOBAL || u->op == Op::DEFINE_LOCAL; }
bool is_gate(UOp u, int lanes) {
  return u->dtype.is_bool() && (u->lanes() == 1 || u->lanes() == lanes);
}

// Ops of which only some kinds of type have a form (op.h).
bool has_form(Op op, DType t) {
  switch (op) {
    case Op::EXP2:
    case Op::LOG2:
    case Op::SIN:
    case Op::SQRT:
    case Op::TRUNC: return t.is_float();
    case Op::FLOORDIV:
    case Op::FLOORMOD: return !t.is_float();
    case Op::XOR:
    case Op::AND:
    case Op::OR: return !t.is_float();
    case Op::SHL:
    case Op::SHR: return t.is_int();
    default: return true;
  }
}

bool yields_void(Op op) {
  switch (op) {
    case Op::SINK:
    case Op::END:
    case Op::IF:
    case Op::ENDIF:
    case Op::BARRIER:
    case Op::STORE: return true;
    default: return false;
  }
}

// Whether source i stands for an order of execution and not for a value.
bool takes_void(Op op, size_t i) {
  switch (op) {
    case Op::SINK:
    case Op::BARRIER:
    case Op::ENDIF: return true;
    case Op::LOAD: return i == 2 || i == 4;
    case Op::STORE: return i == 3 || i == 4;
    default: return false;
  }
}

const char* check_load(DType t, std::span<const UOp> src) {
  if (src.size() < 2 || src.size() > 5) return "(buffer, index[, gate, alternative][, BARRIER])";
  if (!is_memory(src[0])) return "a DEFINE_GLOBAL or DEFINE_LOCAL as first source";
  if (!is_scalar_int(src[1]->dtype)) return "a scalar integer as index";
  if (src.size() >= 4 && !is_gate(src[2], t.lanes))
    return "a bool gate of 1 lane or as many as loaded";
  if (src.size() >= 4 && src[3]->dtype != t) return "an alternative of the loaded type";
  if (src.size() % 2 == 1 && src.back()->op != Op::BARRIER) return "a BARRIER as last source";
  return nullptr;
}

const char* check_store(std::span<const UOp> src) {
  if (src.size() < 3 || src.size() > 5) return "(buffer, index, value[, gate][, BARRIER])";
  if (!is_memory(src[0])) return "a DEFINE_GLOBAL or DEFINE_LOCAL as first source";
  if (!is_scalar_int(src[1]->dtype)) return "a scalar integer as index";
  bool has_barrier = src.size() > 3 && src.back()->op == Op::BARRIER;
  if (src.size() == 5 && !has_barrier) return "a BARRIER as last source";
  if (src.size() - has_barrier == 4 && !is_gate(src[3], src[2]->lanes()))
    return "a bool gate of 1 lane or as many as stored";
  return nullptr;
}

const char* check_define(Op op, DType t, std::span<const UOp> src, int64_t arg,
                         std::span<const int64_t> args) {
  auto not_negative = [](int64_t v) { return v >= 0; };
  bool counts = not_negative(arg) && std::ranges::all_of(args, not_negative);
  switch (op) {
    case Op::DEFINE_GLOBAL:
      if (args.size() != 4 || !counts || args[1] > 1)
        return "buffer=, elements= and flags, none negative";
      return t.lanes == 1 ? nullptr : "a scalar type";
    case Op::DEFINE_LOCAL:
      if (args.size() != 1 || !counts) return "a number and elements=, none negative";
      return t.lanes == 1 ? nullptr : "a scalar type";
    case Op::DEFINE_VAR:
      if (args.size() != 2 || arg < 0 || args[0] > args[1]) return "var=, min= and max= in order";
      if (!is_scalar_int(t)) return "a scalar integer type";
      return wrap_to(t, args[0]) == args[0] && wrap_to(t, args[1]) == args[1]
                 ? nullptr
                 : "bounds within the type";
    case Op::DEFINE_ACC: return src[0]->dtype == t ? nullptr : "an initial value of the same type";
    case Op::SPECIAL:
      if (args.size() != 1 || args[0] < 0 || args[0] > 3 || arg < 0 || arg > 2)
        return "kind=group, local, task or item, and dim=0, 1 or 2";
      return is_scalar_int(t) && src[0]->dtype == t ? nullptr
                                                    : "a scalar integer size of the same type";
    case Op::LANE:
      if (args.size() != 1 || args[0] < 1) return "axis= and a positive size=";
      return is_scalar_int(t) ? nullptr : "a scalar integer type";
    default: return nullptr;
  }
}

const char* check_control(Op op, DType t, std::span<const UOp> src, std::span<const int64_t> args) {
  switch (op) {
    case Op::BARRIER: {
      if (args.empty()) return nullptr;
      if (args.size() != 1 || args[0] < 0 || args[0] > static_cast<int64_t>(src.size()))
        return "[number of sources before those that are loops]";
      bool loops = std::ranges::all_of(src.subspan(static_cast<size_t>(args[0])),
                                       [](UOp u) { return u->op == Op::RANGE; });
      return loops ? nullptr : "RANGEs after what has happened before";
    }
    case Op::RANGE:
      return is_scalar_int(t) && src[0]->dtype == t ? nullptr
                                                    : "a scalar integer size of the same type";
    case Op::END: return src[0]->op == Op::RANGE ? nullptr : "the RANGE that ends";
    case Op::IF: return src[0]->dtype == DType(Scalar::Bool) ? nullptr : "a scalar bool condition";
    case Op::ENDIF: return src[0]->op == Op::IF ? nullptr : "the IF that ends";
    case Op::ASSIGN:
      if (src[0]->op != Op::DEFINE_ACC) return "a DEFINE_ACC as first source";
      return src[0]->dtype == t && src[1]->dtype == t ? nullptr
                                                      : "a value of the accumulator's type";
    default: return nullptr;
  }
}

const char* check_reduce(std::span<const UOp> src, int64_t arg, std::span<const int64_t> args) {
  if (arg != static_cast<int64_t>(Op::ADD) && arg != static_cast<int64_t>(Op::MAX))
    return "op=ADD or op=MAX";
  if (args.empty() || args[0] < 1 || args[0] > static_cast<int64_t>(src.size()))
    return "[number of values, axes]";
  return nullptr;
}

const char* check_kind(Op op, DType t, std::span<const UOp> src, int64_t arg,
                       std::span<const int64_t> args) {
  if (is_alu(op))
    return has_form(op, src.back()->dtype) ? nullptr : "a type that the op has a form for";
  switch (info(op).cls) {
    case OpClass::Define:
      if (op == Op::VCONST && args.size() != t.lanes) return "a value for each lane";
      return check_define(op, t, src, arg, args);
    case OpClass::Control: return check_control(op, t, src, args);
    case OpClass::Reduce: return check_reduce(src, arg, args);
    case OpClass::Vector: return src.empty() ? "sources" : nullptr;
    case OpClass::Memory:
      if (op == Op::LOAD) return check_load(t, src);
      return op == Op::STORE ? check_store(src) : nullptr;
    case OpClass::Alu: break;
  }
  return nullptr;
}

}  // namespace

std::string check_uop(Op op, DType dtype, std::span<const UOp> src, int64_t arg,
                      std::span<const int64_t> args) {
  int arity = info(op).arity;
  if (arity >= 0 && src.size() != static_cast<size_t>(arity))
    return fmt::format("expected {} sources, not {}", arity, src.size());
  if (yields_void(op) != (dtype == kVoid) || is_number(dtype) == yields_void(op))
    return yields_void(op) ? "expected no type" : "expected a type";
  for (size_t i = 0; i < src.size(); ++i)
    if (is_void(src[i]) && !takes_void(op, i))
      return fmt::format("expected a value as source {}, not {}", i, name(src[i]->op));
  const char* expected = check_kind(op, dtype, src, arg, args);
  return expected ? fmt::format("expected {}", expected) : std::string();
}

}  // namespace quern::uop_text
