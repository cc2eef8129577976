#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "quern/codegen/api.h"

namespace quern {

// The element types, in one list: X(Enumerator, name, bits, kind).
//
// `Index` is the type of loop counters and of addresses before legalization: an integer of
// unbounded range whose [min, max] is known. Legalization turns it into int32 or int64, whichever
// the bounds allow. It has no storage and never appears in an AST.
#define QUERN_SCALAR_TYPES(X)        \
  X(Void, "void", 0, None)           \
  X(Bool, "bool", 8, Bool)           \
  X(Int8, "int8", 8, Signed)         \
  X(UInt8, "uint8", 8, Unsigned)     \
  X(Int16, "int16", 16, Signed)      \
  X(UInt16, "uint16", 16, Unsigned)  \
  X(Int32, "int32", 32, Signed)      \
  X(UInt32, "uint32", 32, Unsigned)  \
  X(Int64, "int64", 64, Signed)      \
  X(UInt64, "uint64", 64, Unsigned)  \
  X(Float16, "float16", 16, Float)   \
  X(BFloat16, "bfloat16", 16, Float) \
  X(Float32, "float32", 32, Float)   \
  X(Float64, "float64", 64, Float)   \
  X(Index, "index", 64, Signed)

enum class Scalar : uint8_t {
#define QUERN_X(id, name, bits, kind) id,
  QUERN_SCALAR_TYPES(QUERN_X)
#undef QUERN_X
};

enum class ScalarKind : uint8_t { None, Bool, Signed, Unsigned, Float };

struct ScalarInfo {
  std::string_view name;
  uint8_t bits;  // of storage; a bool takes a byte
  ScalarKind kind;
};

inline constexpr ScalarInfo kScalarInfo[] = {
#define QUERN_X(id, name, bits, kind) {name, bits, ScalarKind::kind},
    QUERN_SCALAR_TYPES(QUERN_X)
#undef QUERN_X
};

// An element type with a number of lanes. `DType(Scalar::Float32, 16)` is one vector of 16 floats.
struct QUERN_API DType {
  Scalar scalar = Scalar::Void;
  uint16_t lanes = 1;

  constexpr DType() = default;
  constexpr DType(Scalar s, int n = 1) : scalar(s), lanes(static_cast<uint16_t>(n)) {}

  constexpr bool operator==(const DType&) const = default;
  constexpr const ScalarInfo& info() const { return kScalarInfo[static_cast<int>(scalar)]; }
  constexpr ScalarKind kind() const { return info().kind; }
  constexpr bool is_float() const { return kind() == ScalarKind::Float; }
  constexpr bool is_bool() const { return kind() == ScalarKind::Bool; }
  constexpr bool is_unsigned() const { return kind() == ScalarKind::Unsigned; }
  constexpr bool is_signed() const { return kind() == ScalarKind::Signed; }
  constexpr bool is_int() const { return is_signed() || is_unsigned(); }
  constexpr bool is_index() const { return scalar == Scalar::Index; }
  // Bits and bytes of one lane in memory.
  constexpr int bits() const { return info().bits; }
  constexpr int itemsize() const { return info().bits / 8; }
  constexpr DType element() const { return DType(scalar); }
  constexpr DType with_lanes(int n) const { return DType(scalar, n); }

  // Range of one lane of an integer or bool type (of Index: all of int64).
  // Uint64's upper bound does not fit and is given as INT64_MAX.
  int64_t min_int() const;
  int64_t max_int() const;
};

// "float32", or "float32x16" for more than one lane.
QUERN_API std::string to_string(DType dtype);
// The scalar type of that name (as in the kernel JSON), or nothing. "index" and "void" are not
// found.
QUERN_API std::optional<DType> parse_dtype(std::string_view name);

}  // namespace quern
