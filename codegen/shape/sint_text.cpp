#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "quern/codegen/error.h"
#include "quern/codegen/shape/sint.h"

namespace quern {
namespace {

constexpr int kMaxDepth = 64;
constexpr size_t kMaxLength = 4096;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// Recursive descent:  sum = product { + product },  product = atom { * atom }.
class Parser {
 public:
  Parser(std::string_view text, const SInt::Lookup& lookup) : text_(text), lookup_(lookup) {}

  SInt parse() {
    if (text_.size() > kMaxLength)
      raise<AstError>("an expression has {} characters, at most {} are supported", text_.size(),
                      kMaxLength);
    SInt result = sum(0);
    peek();
    if (position_ != text_.size()) fail("expected an operator or the end");
    return result;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    raise<AstError>("expression \"{}\", position {}: {}", text_, position_, what);
  }

  // The next character that is not a space; 0 at the end.
  char peek() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }

  SInt sum(int depth) {
    if (depth > kMaxDepth) fail(fmt::format("parentheses nest deeper than {}", kMaxDepth));
    SInt result = product(depth);
    while (accept('+')) result += product(depth);
    return result;
  }

  SInt product(int depth) {
    SInt result = atom(depth);
    while (accept('*')) result *= atom(depth);
    return result;
  }

  SInt atom(int depth) {
    char c = peek();
    if (accept('(')) {
      SInt result = sum(depth + 1);
      if (!accept(')')) fail("expected ')'");
      return result;
    }
    if (is_digit(c) || c == '-') return number();
    if (is_name_start(c)) return variable();
    fail("expected a variable, an integer or '('");
  }

  SInt number() {
    int64_t value = 0;
    const char* end = text_.data() + text_.size();
    auto [stop, error] = std::from_chars(text_.data() + position_, end, value);
    if (error == std::errc::result_out_of_range) fail("the integer does not fit int64");
    if (error != std::errc()) fail("expected digits after '-'");
    position_ = static_cast<size_t>(stop - text_.data());
    return value;
  }

  SInt variable() {
    size_t end = position_;
    while (end < text_.size() && (is_name_start(text_[end]) || is_digit(text_[end]))) ++end;
    std::string_view name = text_.substr(position_, end - position_);
    std::optional<uint32_t> index = lookup_(name);
    if (!index) fail(fmt::format("no variable \"{}\"", name));
    position_ = end;
    return SInt::variable(*index);
  }

  std::string_view text_;
  const SInt::Lookup& lookup_;
  size_t position_ = 0;
};

std::string term_to_string(const SInt::Term& term, std::span<const std::string> names) {
  if (term.vars.empty()) return fmt::format("{}", term.coef);
  std::string result;
  for (uint32_t var : term.vars) {
    if (!result.empty()) result += '*';
    result += var < names.size() ? names[var] : fmt::format("var{}", var);
  }
  if (term.coef != 1) result += fmt::format("*{}", term.coef);
  return term.vars.size() == 1 && term.coef == 1 ? result : fmt::format("({})", result);
}

}  // namespace

SInt SInt::parse(std::string_view text, const Lookup& lookup) {
  return Parser(text, lookup).parse();
}

std::string SInt::to_string(std::span<const std::string> names) const {
  if (is_constant()) return fmt::format("{}", value_);
  if (terms().size() == 1) return term_to_string(terms()[0], names);
  std::string result = "(";
  for (const Term& term : terms()) {
    if (result.size() > 1) result += '+';
    result += term_to_string(term, names);
  }
  return result + ")";
}

}  // namespace quern
