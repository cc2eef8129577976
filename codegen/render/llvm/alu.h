#pragma once

#include <span>

#include "quern/codegen/render/llvm/text.h"
#include "quern/codegen/target.h"
#include "quern/codegen/uop/uop.h"

// Parts of the LLVM renderer: ops that compute a value lane by lane.
namespace quern::llvm_ir {

// Any Alu op; `src` are the values of its sources. Throws std::logic_error for what an earlier pass
// should have replaced (EXP2, arithmetic on half).
Value render_alu(Text& text, UOp u, std::span<const Value> src, const Target& target);

// DIV, MOD, FLOORDIV, FLOORMOD of integers. LLVM's own are undefined for a divisor of 0 and for
// MIN / -1; both are guarded against unless the operands' bounds exclude them.
Value render_division(Text& text, UOp u, Value a, Value b);

// CAST and BITCAST.
Value render_cast(Text& text, Value v, DType to);
Value render_bitcast(Text& text, Value v, DType to);

[[noreturn]] void unexpected(UOp u, const char* why);

}  // namespace quern::llvm_ir
