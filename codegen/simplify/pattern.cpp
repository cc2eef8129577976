#include "quern/codegen/simplify/pattern.h"

#include <cctype>
#include <charconv>
#include <stdexcept>

#include "quern/codegen/simplify/simplify.h"
#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

[[noreturn]] void bad(std::string_view why, std::string_view text) {
  throw std::logic_error("rewrite rule: " + std::string(why) + " at '" + std::string(text) + "'");
}

void skip_spaces(std::string_view& text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
}

std::string_view take_word(std::string_view& text) {
  size_t n = 0;
  while (n < text.size() && text[n] != ' ' && text[n] != ')' && text[n] != '(') ++n;
  std::string_view word = text.substr(0, n);
  text.remove_prefix(n);
  return word;
}

double number_of(std::string_view word) {
  if (word == "true") return 1;
  if (word == "false") return 0;
  double value = 0;
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) bad("no number", word);
  return value;
}

int64_t lane_of(DType dtype, double number) {
  return dtype.is_float() ? float_bits(number) : wrap_to(dtype, static_cast<int64_t>(number));
}

}  // namespace

Pattern::Pattern(std::string_view rule) {
  size_t arrow = rule.find("->");
  if (arrow == rule.npos) bad("no ->", rule);
  std::string_view left = rule.substr(0, arrow), right = rule.substr(arrow + 2);
  parse(left, left_);
  parse(right, right_);
  if (left_.back().kind != Kind::Op) bad("the left side is no op", rule);
}

uint8_t Pattern::parse(std::string_view& text, std::vector<Item>& items) {
  skip_spaces(text);
  if (text.empty()) bad("unexpected end", text);
  Item item{};
  if (text.front() == '(') {
    text.remove_prefix(1);
    auto op = parse_op(take_word(text));
    if (!op) bad("no op", text);
    item.kind = Kind::Op;
    item.op = *op;
    for (skip_spaces(text); !text.empty() && text.front() != ')'; skip_spaces(text))
      item.src[item.nsrc++] = parse(text, items);
    if (text.empty()) bad("no )", text);
    text.remove_prefix(1);
  } else {
    std::string_view word = take_word(text);
    if (word.size() == 1 && std::isalpha(static_cast<unsigned char>(word[0]))) {
      if (letters_.find(word[0]) == letters_.npos) letters_ += word[0];
      item.kind = word[0] >= 'c' && word[0] <= 'e' ? Kind::Constant : Kind::Any;
      item.slot = static_cast<uint8_t>(slot(word[0]));
    } else {
      item.kind = Kind::Number;
      item.number = number_of(word);
    }
  }
  items.push_back(item);
  return static_cast<uint8_t>(items.size() - 1);
}

bool Pattern::match(DType, std::span<const UOp> src, Captures& captures) const {
  captures.fill(nullptr);
  return match_sources(left_.back(), src, captures);
}

bool Pattern::match_sources(const Item& item, std::span<const UOp> src, Captures& captures) const {
  if (src.size() != item.nsrc) return false;
  for (size_t i = 0; i < src.size(); ++i)
    if (!match_item(left_[item.src[i]], src[i], captures)) return false;
  return true;
}

bool Pattern::match_item(const Item& item, UOp u, Captures& captures) const {
  switch (item.kind) {
    case Kind::Op: return u->op == item.op && match_sources(item, u->src(), captures);
    case Kind::Number: return u->is_const(lane_of(u->dtype, item.number));
    case Kind::Constant:
      if (!u->is_const()) return false;
      [[fallthrough]];
    case Kind::Any: {
      UOp& captured = captures[item.slot];
      if (captured) return captured == u;
      captured = u;
      return true;
    }
  }
  return false;
}

UOp Pattern::build(Simplifier& s, DType dtype, const Captures& captures) const {
  std::array<UOp, 16> built{};
  for (size_t i = 0; i < right_.size(); ++i) {
    const Item& item = right_[i];
    if (item.kind == Kind::Number) {
      built[i] = s.graph().constant(dtype, lane_of(dtype, item.number));
    } else if (item.kind != Kind::Op) {
      built[i] = captures[item.slot];
    } else {
      std::array<UOp, 3> src{};
      for (size_t j = 0; j < item.nsrc; ++j) src[j] = built[item.src[j]];
      UOp last = src[item.nsrc - 1u];
      DType type = item.op == Op::CAST   ? dtype
                   : is_compare(item.op) ? DType(Scalar::Bool, last->lanes())
                                         : last->dtype;
      built[i] = s.make(item.op, type, std::span<const UOp>(src.data(), item.nsrc));
    }
  }
  return built[right_.size() - 1];
}

}  // namespace quern
