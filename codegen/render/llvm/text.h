#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "quern/codegen/uop/dtype.h"

// Parts of the LLVM renderer: values and the lines that define them.
namespace quern::llvm_ir {

// What an operand names. `dtype` is the type of its register; of pointers it says nothing.
struct Value {
  enum class Kind : uint8_t {
    Constant,
    Constants,
    Poison,
    Numbered,
    Buffer,
    Scratch,
    Variable,
    Name
  };
  Kind kind = Kind::Constant;
  DType dtype;
  union {
    int64_t n = 0;         // Constant: the bits of every lane (uop.h); else the number
    const int64_t* lanes;  // Constants: the bits of each lane
    const char* name;      // Name: what stands after the %
  };

  static Value constant(DType dtype, int64_t bits) { return make(Kind::Constant, dtype, bits); }
  static Value constants(DType dtype, std::span<const int64_t> bits) {
    Value v = make(Kind::Constants, dtype, 0);
    v.lanes = bits.data();
    return v;
  }
  static Value numbered(DType dtype, int64_t n) { return make(Kind::Numbered, dtype, n); }
  static Value poison(DType dtype) { return make(Kind::Poison, dtype, 0); }
  static Value named(const char* name) {
    Value v = make(Kind::Name, DType(), 0);
    v.name = name;
    return v;
  }
  static Value make(Kind kind, DType dtype, int64_t n) {
    Value v;
    v.kind = kind;
    v.dtype = dtype;
    v.n = n;
    return v;
  }

  bool is_constant() const { return kind == Kind::Constant || kind == Kind::Constants; }
  bool is_zero() const { return kind == Kind::Constant && n == 0; }
  // The same register or constant read as another type of as many bits.
  Value as(DType t) const {
    Value v = *this;
    v.dtype = t;
    return v;
  }
};

// Prints as "type operand".
struct Typed {
  Value value;
};

// Prints as the type's part of an intrinsic's name: "f32", "v16i32".
struct Mangled {
  DType dtype;
};

// A label: a stem with a number.
struct Label {
  const char* stem = "entry";
  int number = -1;  // none
};

// The type in which a lane lies in memory: a bool is a byte.
constexpr DType storage(DType t) { return t.is_bool() ? DType(Scalar::UInt8, t.lanes) : t; }
constexpr DType bool_like(DType t) { return DType(Scalar::Bool, t.lanes); }

// The text of a function as it grows. Its values are numbered in the order in which they are made.
class Text {
 public:
  explicit Text(size_t reserve) { out_.reserve(reserve); }

  // One line; parts are text, numbers, types (DType, Mangled), operands (Value, Typed) and labels.
  template <class... Parts>
  void line(const Parts&... parts) {
    out_ += "  ";
    put_all(parts...);
    out_ += '\n';
  }
  // A line that defines a new value.
  template <class... Parts>
  Value define(DType dtype, const Parts&... parts) {
    Value v = fresh(dtype);
    line(v, " = ", parts...);
    return v;
  }
  void start_block(Label label) {
    put(label);
    out_ += ":\n";
  }

  Value fresh(DType dtype) { return Value::numbered(dtype, next_++); }
  size_t size() const { return out_.size(); }
  void insert(size_t at, std::string_view text) { out_.insert(at, text); }
  std::string take() { return std::move(out_); }

  template <class... Parts>
  void put_all(const Parts&... parts) {
    (put(parts), ...);
  }
  void put(std::string_view text) { out_ += text; }
  void put(const char* text) { out_ += text; }
  void put(std::integral auto n) { put_number(static_cast<int64_t>(n)); }
  void put(DType t);
  void put(const Value& v);
  void put(Label label);
  void put(Mangled type);
  void put(const Typed& typed) {
    put(typed.value.dtype);
    out_ += ' ';
    put(typed.value);
  }

 private:
  void put_number(int64_t n);
  void put_lane(DType element, int64_t bits);
  void put_hex(uint64_t bits, int digits);
  void put_lanes(DType t, const int64_t* bits);

  std::string out_;
  int64_t next_ = 0;
};

}  // namespace quern::llvm_ir
