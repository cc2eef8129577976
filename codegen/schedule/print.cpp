#include <fmt/format.h>

#include "quern/codegen/schedule/schedule.h"

namespace quern {
namespace {

struct KindInfo {
  const char* name;
  char letter;
  int colour;
};

constexpr KindInfo kKinds[] = {
#define QUERN_X(kind, letter, colour, text) {#kind, letter, colour},
    QUERN_AXIS_KINDS(QUERN_X)
#undef QUERN_X
};

const KindInfo& info(AxisKind kind) { return kKinds[static_cast<int>(kind)]; }

// A symbolic size counts as its largest value in names, as launch limits do.
std::string size_text(const SInt& size, const Ast& ast) {
  return size.is_constant() ? fmt::format("{}", size.constant())
                            : fmt::format("v{}", size.bounds(ast.var_bounds()).max);
}

}  // namespace

const char* to_string(AxisKind kind) { return info(kind).name; }

std::string Schedule::name() const {
  bool reduces = false, computes = false;
  for (const AstNode& n : ast_->nodes()) {
    reduces |= n.is_reduce();
    computes |= is_alu(n.op) && n.op != Op::CAST && n.op != Op::BITCAST;
  }
  std::string text = reduces ? "r" : computes ? "E" : "C";
  if (ast_->outputs().size() > 1) text += fmt::format("{}", ast_->outputs().size());
  for (const Axis& a : axes_) {
    text += "_" + size_text(a.size, *ast_);
    if (a.kind != AxisKind::Global) text += info(a.kind).letter;
  }
  return text;
}

std::string Schedule::print(bool colour) const {
  std::vector<std::string> names;
  for (const VarParam& v : ast_->vars()) names.push_back(v.name);
  std::string text = name() + "\n";
  for (size_t i = 0; i < axes_.size(); ++i) {
    const Axis& a = axes_[i];
    std::string line = fmt::format("{:>3}  {:<7} {:>8}  axis {} stride {}", i, info(a.kind).name,
                                   a.size.to_string(names), a.base, a.stride);
    text += colour ? fmt::format("\x1b[{}m{}\x1b[0m\n", info(a.kind).colour, line) : line + "\n";
  }
  text += "opts " + (applied_.empty() ? std::string("none") : to_string(applied_)) + "\n";
  return text;
}

}  // namespace quern
