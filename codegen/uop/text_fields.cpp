#include "quern/codegen/uop/text_fields.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>

#include "quern/codegen/uop/eval.h"
#include "quern/codegen/uop/uop.h"

namespace quern::uop_text {
namespace {

constexpr std::string_view kSpecialNames[] = {"group", "local", "task", "item"};
constexpr size_t kHexDigits = 16;

template <class T>
std::optional<T> parse_number(std::string_view text, int base = 10) {
  T value{};
  const char* end = text.data() + text.size();
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<T>) result = std::from_chars(text.data(), end, value);
  else result = std::from_chars(text.data(), end, value, base);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

bool is_exact(DType dtype, int64_t lane) {
  return float_bits(round_to(dtype, bits_float(lane))) == lane;
}

std::string print_float(DType dtype, int64_t lane) {
  double value = bits_float(lane);
  if (lane == float_bits(std::numeric_limits<double>::quiet_NaN())) return "nan";
  if (lane == float_bits(-std::numeric_limits<double>::quiet_NaN())) return "-nan";
  if (std::isnan(value) || !is_exact(dtype, lane))
    return fmt::format("0x{:0{}x}", static_cast<uint64_t>(lane), kHexDigits);
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  // Half and bfloat16 print as the float that they equal.
  std::string text = dtype.scalar == Scalar::Float64 ? fmt::format("{}", value)
                                                     : fmt::format("{}", static_cast<float>(value));
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

std::optional<int64_t> parse_float(DType dtype, std::string_view text) {
  if (text == "nan") return float_bits(std::numeric_limits<double>::quiet_NaN());
  if (text == "-nan") return float_bits(-std::numeric_limits<double>::quiet_NaN());
  if (text == "inf") return float_bits(HUGE_VAL);
  if (text == "-inf") return float_bits(-HUGE_VAL);
  if (text.starts_with("0x") && text.size() == kHexDigits + 2) {
    auto bits = parse_number<uint64_t>(text.substr(2), 16);
    if (!bits || !is_exact(dtype, static_cast<int64_t>(*bits))) return std::nullopt;
    return static_cast<int64_t>(*bits);
  }
  // Not the other spellings of inf and nan that from_chars takes.
  if (text.find_first_not_of("+-.0123456789eE") != std::string_view::npos) return std::nullopt;
  // Directly, since a float read as a double would be rounded twice.
  if (dtype.scalar == Scalar::Float32) {
    auto value = parse_number<float>(text);
    return value ? std::optional(float_bits(static_cast<double>(*value))) : std::nullopt;
  }
  auto value = parse_number<double>(text);
  return value ? std::optional(float_bits(round_to(dtype, *value))) : std::nullopt;
}

std::optional<int64_t> parse_int(DType dtype, std::string_view text) {
  if (dtype.scalar == Scalar::UInt64) {
    auto value = parse_number<uint64_t>(text);
    return value ? std::optional(static_cast<int64_t>(*value)) : std::nullopt;
  }
  auto value = parse_integer(text);
  if (!value || wrap_to(dtype, *value) != *value) return std::nullopt;
  return value;
}

}  // namespace

Fields fields_of(Op op) {
  using F = Field;
  switch (op) {
    case Op::DEFINE_GLOBAL:
      return {{"buffer", F::Number},
              4,
              {{"elements", F::Number},
               {"written", F::Flag},
               {"height", F::Optional},
               {"width", F::Optional}}};
    case Op::DEFINE_LOCAL: return {{"#", F::Number}, 1, {{"elements", F::Number}}};
    case Op::DEFINE_VAR: return {{"var", F::Number}, 2, {{"min", F::Number}, {"max", F::Number}}};
    case Op::DEFINE_ACC:
    case Op::WMMA: return {{"#", F::Number}, 0, {}};
    case Op::SPECIAL: return {{"dim", F::Number}, 1, {{"kind", F::Special}}};
    case Op::LANE: return {{"axis", F::Number}, 1, {{"size", F::Number}}};
    case Op::RANGE: return {{"#", F::Number}, 1, {{"axis", F::Number}}};
    case Op::REDUCE: return {{"op", F::OpName}, 0, {}};
    default: return Fields();
  }
}

std::string print_value(Field::Kind kind, int64_t value) {
  bool is_special = value >= 0 && value < static_cast<int64_t>(std::size(kSpecialNames));
  if (kind == Field::Special && is_special) return std::string(kSpecialNames[value]);
  if (kind == Field::OpName && value >= 0 && value < kOpCount)
    return std::string(name(static_cast<Op>(value)));
  return fmt::format("{}", value);
}

std::optional<int64_t> parse_value(Field::Kind kind, std::string_view text) {
  switch (kind) {
    case Field::Special:
      for (size_t i = 0; i < std::size(kSpecialNames); ++i)
        if (kSpecialNames[i] == text) return static_cast<int64_t>(i);
      return std::nullopt;
    case Field::OpName:
      if (auto op = parse_op(text)) return static_cast<int64_t>(*op);
      return std::nullopt;
    case Field::Number:
    case Field::Optional:
    case Field::Flag: break;
  }
  return parse_integer(text);
}

std::string print_literal(DType dtype, int64_t lane) {
  if (dtype.is_float()) return print_float(dtype, lane);
  if (dtype.is_bool() && (lane == 0 || lane == 1)) return lane ? "true" : "false";
  if (dtype.scalar == Scalar::UInt64) return fmt::format("{}", static_cast<uint64_t>(lane));
  return fmt::format("{}", lane);
}

std::optional<int64_t> parse_literal(DType dtype, std::string_view text) {
  if (dtype.is_float()) return parse_float(dtype, text);
  if (dtype.is_int()) return parse_int(dtype, text);
  if (dtype.is_bool() && text == "true") return 1;
  if (dtype.is_bool() && text == "false") return 0;
  return std::nullopt;
}

std::optional<DType> parse_vector_dtype(std::string_view text) {
  for (size_t i = 0; i < std::size(kScalarInfo); ++i) {
    std::string_view scalar = kScalarInfo[i].name;
    if (!text.starts_with(scalar)) continue;
    std::string_view rest = text.substr(scalar.size());
    DType dtype(static_cast<Scalar>(i));
    if (rest.empty()) return dtype;
    if (rest[0] != 'x') continue;
    auto lanes = parse_number<uint16_t>(rest.substr(1));
    if (!lanes || *lanes == 0) return std::nullopt;
    return dtype.with_lanes(*lanes);
  }
  return std::nullopt;
}

std::optional<int64_t> parse_integer(std::string_view text) { return parse_number<int64_t>(text); }

}  // namespace quern::uop_text
