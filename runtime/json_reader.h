#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "quern/codegen/error.h"
#include "quern/codegen/uop/dtype.h"

namespace quern {

// An AstError whose message says where in the JSON it is.
class JsonError : public AstError {
 public:
  using AstError::AstError;
};

// A JSON value together with what to call it in messages. Every access checks the type and throws
// JsonError: "node 3 (LOAD): field 'buffer': expected an integer, found \"x\"".
class JsonValue {
 public:
  using Json = nlohmann::ordered_json;

  JsonValue(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {}

  // A field of an object, which must be there.
  JsonValue field(const char* name) const;
  bool has(const char* name) const { return json_->is_object() && json_->contains(name); }
  // An element of an array.
  size_t size() const;
  JsonValue at(size_t i) const;
  // The same value with another name.
  JsonValue called(std::string where) const { return {*json_, std::move(where)}; }

  bool is_null() const { return json_->is_null(); }
  bool is_string() const { return json_->is_string(); }
  bool is_object() const { return json_->is_object(); }
  int64_t integer() const;
  // An integer in min .. max.
  int64_t integer(int64_t min, int64_t max) const;
  std::string string() const;
  DType dtype() const;
  // A number, "nan", "inf" or "-inf" as lane bits of the type (codegen/uop/eval.h). Floats are rounded
  // to it if `round`, otherwise they must be doubles; integers must lie in the type's range.
  int64_t lane(DType dtype, bool round) const;
  double number() const;

  [[noreturn]] void fail(std::string_view why) const;
  [[noreturn]] void fail_expected(std::string_view expected) const;
  const std::string& where() const { return where_; }

 private:
  const Json* json_;
  std::string where_;
};

// Parses text. Throws FileError with the position of what is wrong.
nlohmann::ordered_json parse_json(std::string_view text);

}  // namespace quern
