#include "quern/codegen/schedule/opt.h"

#include <charconv>

#include <fmt/format.h>

#include "quern/codegen/error.h"

namespace quern {
namespace {

constexpr std::string_view kNames[] = {
#define QUERN_X(name, axis) #name,
    QUERN_OPT_OPS(QUERN_X)
#undef QUERN_X
};

std::string_view take(std::string_view& text, char separator) {
  size_t at = std::min(text.find(separator), text.size());
  std::string_view head = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return head;
}

template <class T>
T number(std::string_view word, std::string_view item) {
  T value{};
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size())
    raise<ScheduleError>("opt '{}': '{}' is no number; expected OP:AXIS:AMOUNT", item, word);
  return value;
}

Opt parse_opt(std::string_view item) {
  std::string_view rest = item, op = take(rest, ':');
  std::string known;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] == op) {
      auto known_op = static_cast<OptOp>(i);
      if (axis_of(known_op) == OptAxis::None && item == op) return {known_op, 0, 0};
      std::string_view axis = take(rest, ':'), amount = rest;
      return {known_op, number<int>(axis, item), number<int64_t>(amount, item)};
    }
    known += (known.empty() ? "" : ", ") + std::string(kNames[i]);
  }
  raise<ScheduleError>("opt '{}': unknown op '{}'; known are {}", item, op, known);
}

}  // namespace

std::string to_string(const Opt& opt) {
  if (axis_of(opt.op) == OptAxis::None) return std::string(kNames[static_cast<size_t>(opt.op)]);
  return fmt::format("{}:{}:{}", kNames[static_cast<size_t>(opt.op)], opt.axis, opt.amount);
}

std::string to_string(const std::vector<Opt>& opts) {
  std::string text;
  for (const Opt& opt : opts) text += (text.empty() ? "" : ",") + to_string(opt);
  return text;
}

std::vector<Opt> parse_opts(std::string_view text) {
  std::vector<Opt> opts;
  while (!text.empty()) opts.push_back(parse_opt(take(text, ',')));
  return opts;
}

}  // namespace quern
