#pragma once

#include "quern/codegen/target.h"
#include "quern/codegen/uop/expr.h"
#include "quern/codegen/uop/uop.h"

namespace quern {

// Replaces EXP2, LOG2 and SIN of float32 and float64 by arithmetic: straight-line, without tables
// in memory, fused operations or conversions between float32 and float64. Every backend that rounds
// correctly gives the same bits. The half types are to be legalized before (legalize_float.h).
UOp decompose_transcendentals(Graph& graph, UOp sink, const Target& target);

// The parts, for an argument of float32 or float64. Within 2 ulp in float32 and 3 in float64,
// special values as in C's Annex F.

// 2^x = 2^k 2^f with k the nearest integer and a minimax polynomial for 2^f - 1. Exact for
// integers. The sum with a large constant that rounds x leaves k in its last bits, ready to be
// moved into the exponents of two factors, so that a subnormal result is rounded once.
Expr expand_exp2(Expr x);

// log2(x) = e + log2(1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), so that nothing cancels. float32:
// f + f q(f) with a minimax polynomial q. float64: after k_log.h and e_log2.c of FreeBSD's msun,
// which go back to fdlibm's e_log.c: a series in s = f / (2 + f), its leading part multiplied by
// log2(e) as a sum of two numbers. Exact for powers of two.
Expr expand_log2(Expr x);

// sin(x) by fdlibm's kernels (k_sin.c, k_cos.c) on a reduced argument of twice the precision, after
// M. Payne, R. Hanek, "Radian reduction for trigonometric functions", 1983: of the product of x's
// integral mantissa and the bits of 2/pi only those that matter modulo 4 and for the result's
// precision are computed, in integers. No argument loses accuracy, however large or near a multiple
// of pi.
Expr expand_sin(Expr x);

}  // namespace quern
