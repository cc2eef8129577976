#include "quern/codegen/simplify/rules.h"

#include <array>
#include <cmath>
#include <vector>

#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

using Captures = Pattern::Captures;

UOp at(const Pattern& p, const Captures& captures, char letter) {
  return captures.at(p.slot(letter));
}

// 1/c is exact, so a division may become a multiplication.
bool has_exact_reciprocal(const Pattern& p, const Captures& captures) {
  UOp c = at(p, captures, 'c');
  double value = bits_float(c->arg);
  int exponent;
  if (std::fabs(std::frexp(value, &exponent)) != 0.5) return false;
  // Half and float have normal reciprocals well within these exponents.
  return std::abs(exponent) < (c->dtype.scalar == Scalar::Float16 ? 14 : 120);
}

bool never_less(const Pattern& p, const Captures& captures) {
  return at(p, captures, 'x')->vmin >= at(p, captures, 'y')->vmax &&
         at(p, captures, 'x')->dtype.scalar != Scalar::UInt64;
}
bool never_more(const Pattern& p, const Captures& captures) {
  return at(p, captures, 'x')->vmax <= at(p, captures, 'y')->vmin &&
         at(p, captures, 'y')->dtype.scalar != Scalar::UInt64;
}

struct RuleText {
  std::string_view text;
  RuleTypes types;
  bool (*when)(const Pattern&, const Captures&) = nullptr;
};

using enum RuleTypes;

// A float rule must hold for NaN, infinities and signed zeros: x*0, x-x and x+0 stay (x + 0 turns
// -0 into 0), x + -0 and x - 0 do not.
constexpr RuleText kRules[] = {
    // identities
    {"(ADD x 0) -> x", NoFloat},
    {"(ADD x -0) -> x", Float},
    {"(SUB x 0) -> x", Any},
    {"(SUB x x) -> 0", NoFloat},
    {"(MUL x 1) -> x", Any},
    {"(MUL x 0) -> 0", NoFloat},
    {"(MUL x -1) -> (NEG x)", Float},
    {"(DIV x 1) -> x", Any},
    {"(FLOORDIV x 1) -> x", NoFloat},
    {"(DIV x c) -> (MUL x (DIV 1 c))", Float, has_exact_reciprocal},
    {"(NEG (NEG x)) -> x", Any},
    {"(NEG (SUB x y)) -> (SUB y x)", Int},
    {"(SUB x (NEG y)) -> (ADD x y)", Int},
    {"(SUB x (NEG y)) -> (ADD x y)", Float},
    {"(ADD x (NEG y)) -> (SUB x y)", Int},
    {"(ADD x (NEG y)) -> (SUB x y)", Float},
    // constants to one place
    {"(SUB x c) -> (ADD x (NEG c))", Int},
    {"(ADD (ADD x c) d) -> (ADD x (ADD c d))", Int},
    {"(MUL (MUL x c) d) -> (MUL x (MUL c d))", Int},
    {"(XOR (XOR x c) d) -> (XOR x (XOR c d))", Int},
    // lattice
    {"(MAX x x) -> x", Any},
    {"(MAX x y) -> x", NoFloat, never_less},
    {"(MAX x y) -> y", NoFloat, never_more},
    {"(AND x x) -> x", NoFloat},
    {"(OR x x) -> x", NoFloat},
    {"(XOR x x) -> 0", NoFloat},
    {"(XOR x 0) -> x", NoFloat},
    {"(AND x 0) -> 0", NoFloat},
    {"(OR x 0) -> x", NoFloat},
    {"(AND (AND x y) y) -> (AND x y)", NoFloat},
    {"(AND (AND x y) x) -> (AND x y)", NoFloat},
    {"(OR (OR x y) y) -> (OR x y)", NoFloat},
    {"(OR (OR x y) x) -> (OR x y)", NoFloat},
    // bool arithmetic is logic
    {"(MUL x y) -> (AND x y)", Bool},
    {"(ADD x y) -> (OR x y)", Bool},
    {"(MAX x y) -> (OR x y)", Bool},
    {"(SUB x y) -> (XOR x y)", Bool},
    {"(AND x true) -> x", Bool},
    {"(OR x true) -> true", Bool},
    {"(XOR x true) -> (NEG x)", Bool},
    {"(AND x (NEG x)) -> false", Bool},
    // choices
    {"(WHERE c x y) -> y", Any,
     [](const Pattern& p, const Captures& m) { return at(p, m, 'c')->arg == 0; }},
    {"(WHERE c x y) -> x", Any,
     [](const Pattern& p, const Captures& m) { return at(p, m, 'c')->arg != 0; }},
    {"(WHERE g x x) -> x", Any},
    {"(WHERE (NEG g) x y) -> (WHERE g y x)", Any},
    {"(WHERE g (WHERE g x y) z) -> (WHERE g x z)", Any},
    {"(WHERE g x (WHERE g y z)) -> (WHERE g x z)", Any},
    {"(WHERE g true false) -> g", Bool},
    {"(WHERE g false true) -> (NEG g)", Bool},
    {"(WHERE g x false) -> (AND g x)", Bool},
    // comparisons; the operands' type is that of the captured nodes
    {"(CMPEQ g false) -> (NEG g)", Bool,
     [](const Pattern& p, const Captures& m) { return at(p, m, 'g')->dtype.is_bool(); }},
    {"(CMPEQ g true) -> g", Bool,
     [](const Pattern& p, const Captures& m) { return at(p, m, 'g')->dtype.is_bool(); }},
    {"(CMPEQ x x) -> true", Bool,
     [](const Pattern& p, const Captures& m) { return !at(p, m, 'x')->dtype.is_float(); }},
    {"(CMPLT x x) -> false", Bool},
};

struct Table {
  std::vector<Rule> rules;
  std::array<std::vector<const Rule*>, kOpCount> by_op;

  Table() {
    for (const RuleText& r : kRules) rules.push_back({Pattern(r.text), r.types, r.when, r.text});
    for (const Rule& r : rules) by_op[static_cast<size_t>(r.pattern.root())].push_back(&r);
  }
};

const Table& table() {
  static const Table& instance = *new Table;  // never destroyed: threads may still compile
  return instance;
}

}  // namespace

std::span<const Rule> all_rules() { return table().rules; }
std::span<const Rule* const> rules_for(Op op) { return table().by_op[static_cast<size_t>(op)]; }

bool applies_to(const Rule& rule, DType result) {
  RuleTypes kind = result.is_float()   ? Float
                   : result.is_bool()  ? Bool
                   : result.is_index() ? RuleTypes::Index
                                       : Int;
  return static_cast<int>(rule.types) & static_cast<int>(kind);
}

}  // namespace quern
