#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/codegen/uop/uop.h"

namespace quern {

class Simplifier;

// A rewrite rule as text, compiled once:
//
//   (ADD (ADD x c) d) -> (ADD x (ADD c d))
//
// An upper-case word is an op; `c`, `d`, `e` match a CONST, other letters anything; a repeated
// letter must be the same node. A number is a CONST of that value in the type at hand (true and
// false for bool). On the right, an op's result has the type of its last source (bool for
// comparisons); CAST makes the type of the node that matched. No side may be deeper than a few
// nodes.
class Pattern {
 public:
  static constexpr int kMaxVars = 8;
  using Captures = std::array<UOp, kMaxVars>;

  // Throws std::logic_error on a text that it cannot read.
  explicit Pattern(std::string_view rule);

  Op root() const { return left_.back().op; }
  // The captured nodes by letter (see slot), if a node with this op and these sources matches.
  bool match(DType dtype, std::span<const UOp> src, Captures& captures) const;
  UOp build(Simplifier& s, DType dtype, const Captures& captures) const;

  // The slot of a letter that the rule uses.
  size_t slot(char letter) const { return letters_.find(letter); }
  const std::string& letters() const { return letters_; }

 private:
  enum class Kind : uint8_t { Op, Any, Constant, Number };
  struct Item {  // in postfix order: the sources' items stand before their op
    Kind kind;
    Op op = Op::SINK;
    uint8_t slot = 0;
    uint8_t nsrc = 0;
    std::array<uint8_t, 3> src{};
    double number = 0;
  };

  uint8_t parse(std::string_view& text, std::vector<Item>& items);
  bool match_item(const Item& item, UOp u, Captures& captures) const;
  bool match_sources(const Item& item, std::span<const UOp> src, Captures& captures) const;

  std::vector<Item> left_, right_;
  std::string letters_;
};

}  // namespace quern
