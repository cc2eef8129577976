#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "quern/codegen/uop/dtype.h"
#include "quern/codegen/uop/op.h"

// What the printer and the parser of the uop text share.
namespace quern::uop_text {

struct Field {
  enum Kind : uint8_t {
    Number,
    Optional,  // a number that is left out where it is 0
    Flag,      // 0 is left out, 1 is just the name
    Special,   // the name of a SpecialKind
    OpName,
  };
  std::string_view name;
  Kind kind = Number;
};

// How an op's `arg` and `args` are written. An op has either names for all of its args, or none.
struct Fields {
  static constexpr size_t kMaxArgs = 4;
  Field arg = {"#", Field::Optional};
  size_t nargs = 0;
  Field args[kMaxArgs] = {};
};

Fields fields_of(Op op);

// The text of a field's value, which is a number or a word, and back.
std::string print_value(Field::Kind kind, int64_t value);
std::optional<int64_t> parse_value(Field::Kind kind, std::string_view text);

// One lane of a constant. Parsing rounds a float to its type and gives nothing for an integer that
// the type does not hold.
std::string print_literal(DType dtype, int64_t lane);
std::optional<int64_t> parse_literal(DType dtype, std::string_view text);

// "float32x16", also of the types that parse_dtype (dtype.h) leaves out.
std::optional<DType> parse_vector_dtype(std::string_view text);

// A decimal integer, or nothing if that is not all there is or it does not fit.
std::optional<int64_t> parse_integer(std::string_view text);

}  // namespace quern::uop_text
