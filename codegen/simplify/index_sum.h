#pragma once

#include <utility>
#include <vector>

#include "quern/codegen/uop/uop.h"

namespace quern {

class Simplifier;

// An Index expression as coefficients of terms (nodes that are no sums or multiples of constants)
// plus a constant. Index arithmetic does not wrap, so this form is exact; where a coefficient would
// leave int64 the functions below give up and leave the node as it is.
struct IndexSum {
  struct Term {
    UOp base;
    int64_t coefficient;
  };
  std::vector<Term> terms;  // by id of the base, no coefficient is 0
  int64_t constant = 0;
};

IndexSum to_sum(UOp u);
// The canonical node. Puts x back together from its quotient and remainder:
//   (x // c) * c*k + (x % c) * k            -> x*k
//   ((x // c) % d) * c*k + (x % c) * k      -> (x % c*d) * k
UOp from_sum(Simplifier& s, IndexSum sum);

// Simplified forms of Index ops; null if the plain node is already the simplest. Constants stand on
// the right, but for `constant < sum` where the sum would be one of negative terms otherwise.
// Divisors are positive constants, others are left alone.
UOp simplify_index_sum(Simplifier& s, Op op, UOp a, UOp b);       // ADD SUB MUL NEG
UOp simplify_index_division(Simplifier& s, Op op, UOp a, UOp b);  // FLOORDIV FLOORMOD
UOp simplify_index_compare(Simplifier& s, Op op, UOp a, UOp b);   // CMPLT CMPEQ

}  // namespace quern
