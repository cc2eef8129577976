#pragma once

#include <span>

#include "quern/codegen/simplify/pattern.h"

namespace quern {

// Which result types a rule holds for.
enum class RuleTypes : uint8_t {
  Int = 1,
  Float = 2,
  Bool = 4,
  Index = 8,
  IntIndex = 9,
  NoFloat = 13,
  Any = 15
};

struct Rule {
  Pattern pattern;
  RuleTypes types;
  // An extra condition on the captured nodes, or null.
  bool (*when)(const Pattern& pattern, const Pattern::Captures& captures);
  std::string_view text;
};

// Every rule, and those whose left side has that op at its root.
std::span<const Rule> all_rules();
std::span<const Rule* const> rules_for(Op op);
bool applies_to(const Rule& rule, DType result);

}  // namespace quern
