#include "quern/codegen/ast/text.h"

#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "quern/codegen/uop/text_fields.h"

namespace quern {
namespace {

class AstPrinter {
 public:
  explicit AstPrinter(const Ast& ast) : ast_(ast) {
    for (const VarParam& var : ast.vars()) names_.push_back(var.name);
  }

  std::string print() {
    for (const VarParam& var : ast_.vars())
      put("variable {}: {} .. {}\n", var.name, var.min, var.max);
    for (size_t i = 0; i < ast_.buffers().size(); ++i) buffer(i);
    for (size_t i = 0; i < ast_.nodes().size(); ++i) node(i);
    return std::move(out_);
  }

 private:
  template <class... A>
  void put(fmt::format_string<A...> format, A&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<A>(args)...);
  }

  void buffer(size_t i) {
    const BufferParam& param = ast_.buffers()[i];
    put("buffer {}: {}[{}]", i, to_string(param.dtype), param.size);
    if (param.image_height > 0) put(" image {} x {}", param.image_height, param.image_width);
    if (param.written) put(" written");
    put("\n");
  }

  void node(size_t i) {
    const AstNode& n = ast_.nodes()[i];
    put("%{} = {} {} [", i, name(n.op), to_string(n.dtype));
    const char* separator = "";
    for (const SInt& size : ast_.shape(n)) {
      put("{}{}", separator, size.to_string(names_));
      separator = ",";
    }
    put("]");
    separator = " (";
    for (NodeId s : n.sources()) {
      put("{}%{}", separator, s);
      separator = ", ";
    }
    if (n.nsrc > 0) put(")");
    if (n.is_reduce()) axes(n.axes);
    if (n.op == Op::CONST)
      put(" {}",
          n.var == AstNode::kNone ? uop_text::print_literal(n.dtype, n.value) : names_[n.var]);
    if (n.buffer != AstNode::kNone) put(" buffer {}", n.buffer);
    if (n.tracker != AstNode::kNone) put(" {}", ast_.tracker(n).to_string(names_));
    put("\n");
  }

  void axes(uint64_t mask) {
    const char* separator = " axes ";
    for (int axis = 0; axis < 64; ++axis) {
      if (!(mask >> axis & 1)) continue;
      put("{}{}", separator, axis);
      separator = ",";
    }
  }

  const Ast& ast_;
  std::vector<std::string> names_;
  std::string out_;
};

}  // namespace

std::string print_ast(const Ast& ast) { return AstPrinter(ast).print(); }

}  // namespace quern
