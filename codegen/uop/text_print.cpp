#include <cstddef>
#include <iterator>
#include <string>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "quern/codegen/uop/text.h"
#include "quern/codegen/uop/text_fields.h"

namespace quern {
namespace {

using uop_text::Field;
using uop_text::Fields;

bool opens_scope(UOp u) { return u->op == Op::RANGE || u->op == Op::IF; }
bool closes_scope(UOp u) { return u->op == Op::END || u->op == Op::ENDIF; }

class Printer {
 public:
  explicit Printer(std::span<const UOp> uops) : uops_(uops) {
    for (size_t i = 0; i < uops.size(); ++i) number_.emplace(uops[i], i);
  }

  std::string print(bool indent) {
    size_t depth = 0;
    for (size_t i = 0; i < uops_.size(); ++i) {
      UOp u = uops_[i];
      if (closes_scope(u) && depth > 0) --depth;
      if (indent) out_.append(2 * depth, ' ');
      put("%{} = ", i);
      uop(u);
      out_ += '\n';
      if (opens_scope(u)) ++depth;
    }
    return std::move(out_);
  }

  // "LOAD float32 (%0, %1)"
  std::string without_label(UOp u) {
    out_.clear();
    uop(u);
    return std::move(out_);
  }

 private:
  template <class... A>
  void put(fmt::format_string<A...> format, A&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<A>(args)...);
  }

  template <class Range, class F>
  void list(char open, const Range& range, char close, F&& item) {
    put(" {}", open);
    const char* separator = "";
    for (const auto& element : range) {
      put("{}{}", separator, item(element));
      separator = ", ";
    }
    out_ += close;
  }

  // A source that is not in the list is an error elsewhere; it should still print.
  std::string label(UOp u) const {
    auto found = number_.find(u);
    return found == number_.end() ? "%?" : fmt::format("%{}", found->second);
  }

  void uop(UOp u) {
    out_ += name(u->op);
    if (u->dtype != DType()) put(" {}", to_string(u->dtype));
    if (u->nsrc > 0) list('(', u->src(), ')', [this](UOp s) { return label(s); });
    auto literal = [u](int64_t lane) { return uop_text::print_literal(u->dtype, lane); };
    if (u->op == Op::CONST) return put(" {}", literal(u->arg));
    Fields fields = uop_text::fields_of(u->op);
    field(fields.arg, u->arg);
    if (u->op == Op::VCONST) return list('[', u->args, ']', literal);
    if (fields.nargs > 0 && fields.nargs == u->args.size()) {
      for (size_t i = 0; i < fields.nargs; ++i) field(fields.args[i], u->args[i]);
    } else if (!u->args.empty()) {
      list('[', u->args, ']', [](int64_t v) { return v; });
    }
  }

  void field(Field f, int64_t value) {
    if (value == 0 && (f.kind == Field::Optional || f.kind == Field::Flag)) return;
    if (f.name == "#") return put(" #{}", value);
    if (f.kind == Field::Flag && value == 1) return put(" {}", f.name);
    put(" {}={}", f.name, uop_text::print_value(f.kind, value));
  }

  std::span<const UOp> uops_;
  std::unordered_map<UOp, size_t> number_;
  std::string out_;
};

const char* colour(OpClass cls) {
  switch (cls) {
    case OpClass::Alu: return "lightblue";
    case OpClass::Vector: return "lightcyan";
    case OpClass::Memory: return "orange";
    case OpClass::Control: return "lightgrey";
    case OpClass::Define: return "palegreen";
    case OpClass::Reduce: return "plum";
  }
  return "white";
}

}  // namespace

std::string print_uops(const LinearUOps& uops) { return Printer(uops).print(true); }

std::string print_graph(UOp sink) { return Printer(reachable({&sink, 1})).print(false); }

std::string graph_dot(const LinearUOps& uops) {
  std::string out = "digraph uops {\n  node [shape=box, style=filled, fontname=monospace];\n";
  auto put = [&out](auto format, auto&&... args) {
    fmt::format_to(std::back_inserter(out), format, args...);
  };
  std::unordered_map<UOp, size_t> number;
  Printer printer(uops);
  size_t depth = 1;
  for (size_t i = 0; i < uops.size(); ++i) {
    UOp u = uops[i];
    number.emplace(u, i);
    if (opens_scope(u)) {
      out.append(2 * depth++, ' ');
      put(FMT_STRING("subgraph cluster_{} {{ label=\"%{} {}\";\n"), i, i, name(u->op));
    }
    out.append(2 * depth, ' ');
    put(FMT_STRING("u{} [label=\"%{} {}\", fillcolor={}];\n"), i, i, printer.without_label(u),
        colour(info(u->op).cls));
    if (closes_scope(u) && depth > 1) {
      out.append(2 * --depth, ' ');
      out += "}\n";
    }
  }
  for (; depth > 1; --depth) out += "}\n";
  for (size_t i = 0; i < uops.size(); ++i)
    for (UOp s : uops[i]->src())
      if (auto found = number.find(s); found != number.end())
        put(FMT_STRING("  u{} -> u{};\n"), found->second, i);
  return out + "}\n";
}

}  // namespace quern
