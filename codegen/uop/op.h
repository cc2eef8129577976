#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "quern/codegen/api.h"

namespace quern {

// What every operation means, once. Backends and the interpreter are judged against this text; the
// executable form for one lane is eval.h.
//
// Every op is total and works lane by lane. It computes in its operands' element type and rounds to
// it, to nearest even; half and bfloat16 behave as if computed in float32 and rounded after each
// op.
//   ADD SUB MUL NEG
//     Integers wrap. On bool: ADD is or, MUL is and, SUB is xor, NEG is not.
//   DIV
//     Floats: IEEE. Integers truncate toward zero; x/0 = 0; MIN/-1 wraps to MIN.
//   MOD
//     Floats: fmod. Integers: the remainder of DIV, with the dividend's sign; x%0 = 0.
//   FLOORDIV FLOORMOD
//     Integers and Index: division rounding down, and its remainder, with the divisor's sign; 0 for
//     a divisor of 0. Index arithmetic uses these: their algebra has no case distinctions.
//   MAX
//     Floats: NaN if either operand is NaN; MAX(-0, 0) may be either. On bool: or.
//   CMPLT CMPEQ
//     To bool; false if an operand is NaN. On bool, a CMPLT b is (not a) and b.
//   AND OR XOR
//     Bitwise on integers, logical on bool; not on floats.
//   SHL SHR
//     Integers by a CONST amount in [0, bits); SHR is arithmetic on signed types.
//   WHERE
//     src0 ? src1 : src2, on bool lanes. Both values are evaluated.
//   MULACC
//     src0 * src1 + src2. For floats the product may be rounded or not (a target with a fused
//     multiply-add uses it); integers wrap.
//   EXP2 LOG2 SIN SQRT
//     Floats. SQRT is correctly rounded, the others within 2 ulp in float32 and 3 in float64;
//     special cases as in C's Annex F. RECIP does not exist: DIV(1, x).
//   TRUNC
//     Floats: toward zero, to an integral value.
//   CAST
//     Float to integer truncates and saturates, NaN gives 0; integer to integer wraps; anything to
//     bool is x != 0 (NaN gives true); bool gives 0 or 1; to a float rounds to nearest even,
//     overflowing to infinity.
//   BITCAST
//     Reinterprets the bits of equally sized lanes.
//
// Columns: X(Name, number of sources (-1: any), class, stages in which it may appear).
//   class: Alu (pure, lane-wise), Vector (moves lanes), Memory, Control, Define, Reduce
//   stages: A = AST, G = uop graph, L = linearized uops
#define QUERN_OPS(X)                   \
  X(SINK, -1, Control, kG)             \
  X(CONST, 0, Define, kA | kG | kL)    \
  X(VCONST, 0, Define, kG | kL)        \
  X(DEFINE_GLOBAL, 0, Define, kG | kL) \
  X(DEFINE_LOCAL, 0, Define, kG | kL)  \
  X(DEFINE_VAR, 0, Define, kG | kL)    \
  X(DEFINE_ACC, 1, Define, kL)         \
  X(SPECIAL, 1, Define, kG | kL)       \
  X(LANE, 0, Define, kG)               \
  X(RANGE, 1, Control, kG | kL)        \
  X(END, 1, Control, kL)               \
  X(IF, 1, Control, kL)                \
  X(ENDIF, 1, Control, kL)             \
  X(BARRIER, -1, Control, kG | kL)     \
  X(LOAD, -1, Memory, kA | kG | kL)    \
  X(STORE, -1, Memory, kA | kG | kL)   \
  X(ASSIGN, 2, Control, kL)            \
  X(REDUCE, -1, Reduce, kG)            \
  X(SUM, 1, Reduce, kA)                \
  X(MAX_REDUCE, 1, Reduce, kA)         \
  X(EXPAND, 1, Vector, kA)             \
  X(VECTORIZE, -1, Vector, kG | kL)    \
  X(GEP, 1, Vector, kG | kL)           \
  X(WMMA, 3, Memory, kG | kL)          \
  X(CAST, 1, Alu, kA | kG | kL)        \
  X(BITCAST, 1, Alu, kA | kG | kL)     \
  X(EXP2, 1, Alu, kA | kG | kL)        \
  X(LOG2, 1, Alu, kA | kG | kL)        \
  X(SIN, 1, Alu, kA | kG | kL)         \
  X(SQRT, 1, Alu, kA | kG | kL)        \
  X(NEG, 1, Alu, kA | kG | kL)         \
  X(TRUNC, 1, Alu, kG | kL)            \
  X(ADD, 2, Alu, kA | kG | kL)         \
  X(SUB, 2, Alu, kA | kG | kL)         \
  X(MUL, 2, Alu, kA | kG | kL)         \
  X(DIV, 2, Alu, kA | kG | kL)         \
  X(MOD, 2, Alu, kA | kG | kL)         \
  X(FLOORDIV, 2, Alu, kG | kL)         \
  X(FLOORMOD, 2, Alu, kG | kL)         \
  X(MAX, 2, Alu, kA | kG | kL)         \
  X(CMPLT, 2, Alu, kA | kG | kL)       \
  X(CMPEQ, 2, Alu, kA | kG | kL)       \
  X(XOR, 2, Alu, kA | kG | kL)         \
  X(AND, 2, Alu, kG | kL)              \
  X(OR, 2, Alu, kG | kL)               \
  X(SHL, 2, Alu, kG | kL)              \
  X(SHR, 2, Alu, kG | kL)              \
  X(WHERE, 3, Alu, kA | kG | kL)       \
  X(MULACC, 3, Alu, kA | kG | kL)

enum class Op : uint8_t {
#define QUERN_X(name, arity, cls, stages) name,
  QUERN_OPS(QUERN_X)
#undef QUERN_X
};

enum class OpClass : uint8_t { Alu, Vector, Memory, Control, Define, Reduce };

struct OpInfo {
  static constexpr uint8_t kA = 1, kG = 2, kL = 4;
  std::string_view name;
  int8_t arity;
  OpClass cls;
  uint8_t stages;
};

namespace detail {
inline constexpr uint8_t kA = OpInfo::kA, kG = OpInfo::kG, kL = OpInfo::kL;
inline constexpr OpInfo kOpInfo[] = {
#define QUERN_X(name, arity, cls, stages) {#name, arity, OpClass::cls, stages},
    QUERN_OPS(QUERN_X)
#undef QUERN_X
};
}  // namespace detail

inline constexpr int kOpCount = static_cast<int>(std::size(detail::kOpInfo));

constexpr const OpInfo& info(Op op) { return detail::kOpInfo[static_cast<int>(op)]; }
constexpr std::string_view name(Op op) { return info(op).name; }
constexpr bool is_alu(Op op) { return info(op).cls == OpClass::Alu; }
constexpr bool is_compare(Op op) { return op == Op::CMPLT || op == Op::CMPEQ; }
constexpr bool is_commutative(Op op) {
  switch (op) {
    case Op::ADD:
    case Op::MUL:
    case Op::MAX:
    case Op::CMPEQ:
    case Op::XOR:
    case Op::AND:
    case Op::OR: return true;
    default: return false;
  }
}

// The op of that name, or nothing.
QUERN_API std::optional<Op> parse_op(std::string_view name);

}  // namespace quern
