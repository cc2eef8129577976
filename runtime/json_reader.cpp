#include "quern/runtime/json_reader.h"

#include <cmath>
#include <limits>

#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

using Json = nlohmann::ordered_json;

// Enough of a value to recognize it.
std::string excerpt(const Json& json) {
  constexpr size_t kLength = 40;
  if (json.is_structured()) return json.is_array() ? "an array" : "an object";
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() > kLength ? text.substr(0, kLength) + "..." : text;
}

// nlohmann's own prefix, "[json.exception.parse_error.101] ", means nothing to users.
std::string message(const Json::exception& e) {
  std::string text = e.what();
  size_t end = text.find("] ");
  return end == std::string::npos ? text : text.substr(end + 2);
}

}  // namespace

Json parse_json(std::string_view text) {
  // The parser would take it for the end and ignore what follows.
  if (size_t nul = text.find('\0'); nul != std::string_view::npos)
    raise<FileError>("not JSON: a NUL byte in column {}", nul + 1);
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    raise<FileError>("not JSON: {}", message(e));
  }
}

void JsonValue::fail(std::string_view why) const { raise<JsonError>("{}: {}", where_, why); }

void JsonValue::fail_expected(std::string_view expected) const {
  raise<JsonError>("{}: expected {}, found {}", where_, expected, excerpt(*json_));
}

JsonValue JsonValue::field(const char* name) const {
  if (!json_->is_object()) fail_expected("an object");
  auto found = json_->find(name);
  if (found == json_->end()) fail(fmt::format("field '{}' is missing", name));
  return {*found, fmt::format("{}: field '{}'", where_, name)};
}

size_t JsonValue::size() const {
  if (!json_->is_array()) fail_expected("an array");
  return json_->size();
}

JsonValue JsonValue::at(size_t i) const {
  return {(*json_)[i], fmt::format("{}, element {}", where_, i)};
}

int64_t JsonValue::integer() const {
  if (!json_->is_number_integer()) fail_expected("an integer");
  if (json_->is_number_unsigned() && json_->get<uint64_t>() > INT64_MAX)
    fail_expected("an integer of 64 bits");
  return json_->get<int64_t>();
}

int64_t JsonValue::integer(int64_t min, int64_t max) const {
  int64_t value = integer();
  if (value < min || value > max) fail_expected(fmt::format("an integer from {} to {}", min, max));
  return value;
}

std::string JsonValue::string() const {
  if (!json_->is_string()) fail_expected("a string");
  return json_->get<std::string>();
}

DType JsonValue::dtype() const {
  std::optional<DType> dtype = parse_dtype(string());
  if (!dtype)
    fail_expected("bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32 or float64");
  return *dtype;
}

double JsonValue::number() const {
  if (!json_->is_number()) fail_expected("a number");
  return json_->get<double>();
}

int64_t JsonValue::lane(DType dtype, bool round) const {
  if (dtype.is_float()) {
    double value = 0;
    if (is_string()) {
      std::string text = string();
      if (text == "nan") value = std::numeric_limits<double>::quiet_NaN();
      else if (text == "inf") value = HUGE_VAL;
      else if (text == "-inf") value = -HUGE_VAL;
      else fail_expected("a number, \"nan\", \"inf\" or \"-inf\"");
    } else {
      value = number();
    }
    return float_bits(round ? round_to(dtype, value) : value);
  }
  if (json_->is_boolean()) return json_->get<bool>();
  if (dtype.scalar == Scalar::UInt64 && json_->is_number_unsigned())
    return static_cast<int64_t>(json_->get<uint64_t>());
  int64_t value = 0;
  if (json_->is_number_float()) {
    double number = json_->get<double>();
    if (number != std::floor(number) || std::fabs(number) > 0x1p53)
      fail_expected(fmt::format("a value of type {}", to_string(dtype)));
    value = static_cast<int64_t>(number);
  } else {
    value = integer();
  }
  if (value < dtype.min_int() || value > dtype.max_int())
    fail_expected(fmt::format("a value of type {}", to_string(dtype)));
  return value;
}

}  // namespace quern
