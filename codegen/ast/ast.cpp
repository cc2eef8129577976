#include "quern/codegen/ast/ast.h"

#include <cstdint>

namespace quern {

SInt Ast::flops() const {
  SInt total = 0;
  for (const AstNode& n : nodes_) {
    bool moves = n.op == Op::CAST || n.op == Op::BITCAST;
    if (n.is_reduce()) total += product(shape(node(n.src[0])));
    else if (is_alu(n.op) && !moves) total += product(shape(n));
  }
  return total;
}

int64_t Ast::bytes() const {
  int64_t total = 0;
  for (const BufferParam& b : buffers_)
    if (__builtin_add_overflow(total, b.size * b.dtype.itemsize(), &total)) return INT64_MAX;
  return total;
}

}  // namespace quern
