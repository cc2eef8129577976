#pragma once

// SInt: a size, stride, offset or mask bound that may depend on the variables of a kernel.
//
// It is an int64 or a polynomial with integer coefficients over the variables, in canonical form.
// Why a polynomial and not nodes of the uop graph: shapes, strides and offsets are only ever added,
// multiplied and divided where that is exact, so polynomials are closed under all that views do;
// equality is structural ("does this stride continue that one" needs no prover); and it is a plain
// value, so a View needs no graph that owns it. Lowering turns one into uops by walking terms().
//
// A variable is known by its position in the kernel's variable list. Names and bounds are the
// caller's and come in as arguments.
//
// Errors: AstError where a result does not fit (int64 overflow, degree above 16, more than 256
// terms).

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/codegen/api.h"

namespace quern {

// The values that a variable or an expression may take, both ends included.
struct VarBounds {
  int64_t min = 0;
  int64_t max = 0;
  bool operator==(const VarBounds&) const = default;
};

class QUERN_API SInt {
 public:
  // coef times the product of the variables; vars is ascending and repeats a variable for its
  // powers.
  struct Term {
    int64_t coef;
    std::vector<uint32_t> vars;
    bool operator==(const Term&) const = default;
  };

  SInt(int64_t value = 0) : value_(value) {}  // implicit: a number is a symbolic integer
  static SInt variable(uint32_t index);

  bool is_constant() const { return !poly_; }
  // Of a constant only.
  int64_t constant() const { return value_; }
  // The terms of a non-constant: highest degree first, then variables in order; the constant term,
  // if there is one, is last and has no vars. Empty for a constant.
  std::span<const Term> terms() const;

  // The least and greatest value over all values of the variables in `vars` (position = variable;
  // one that is missing there may be anything). Never too narrow. Exact if, once every variable in
  // which the polynomial is monotone is at its end, at most 8 of degree 1 are left, or few values
  // of others. An end that does not fit is INT64_MIN or INT64_MAX; if computing it might overflow,
  // both are.
  VarBounds bounds(std::span<const VarBounds> vars) const;

  // The value where variable i has values[i].
  int64_t eval(std::span<const int64_t> values) const;

  // In the kernel JSON's expression syntax, such as "((start_pos*384)+384)"; parse() reads it back.
  std::string to_string(std::span<const std::string> names) const;

  // Gives the position of a name in the variable list, or nothing if there is no such variable.
  using Lookup = std::function<std::optional<uint32_t>(std::string_view name)>;
  // Variable names, decimal integers (also negative), +, *, parentheses and spaces; * binds closer.
  // AstError names the position of what is wrong.
  static SInt parse(std::string_view text, const Lookup& lookup);

  uint64_t hash() const;

  bool operator==(const SInt& other) const;
  // A total order that depends on the values only: constants by size, then polynomials.
  std::strong_ordering operator<=>(const SInt& other) const;

  friend SInt operator+(const SInt& a, const SInt& b);
  friend SInt operator-(const SInt& a, const SInt& b);
  friend SInt operator*(const SInt& a, const SInt& b);
  SInt operator-() const { return SInt(0) - *this; }
  SInt& operator+=(const SInt& other) { return *this = *this + other; }
  SInt& operator-=(const SInt& other) { return *this = *this - other; }
  SInt& operator*=(const SInt& other) { return *this = *this * other; }

  // Sums up terms in any order, with repeats.
  static SInt from_terms(std::vector<Term> terms);

 private:
  struct Poly {
    std::vector<Term> terms;  // sorted, no zero, at least one with variables
  };

  explicit SInt(std::vector<Term> sorted);

  int64_t value_ = 0;  // 0 if there is a poly_
  std::shared_ptr<const Poly> poly_;
};

// quotient * b + remainder == a, always. By a constant b, remainder's coefficients are in [0, |b|)
// or (b < 0) in (b, 0]. By a polynomial, terms that its first term does not divide are the
// remainder. b != 0.
struct SIntDivision {
  SInt quotient;
  SInt remainder;
};
QUERN_API SIntDivision divide(const SInt& a, const SInt& b);

// a / b if that is a polynomial with integer coefficients; nothing if not, or if b is 0.
QUERN_API std::optional<SInt> divide_exact(const SInt& a, const SInt& b);

// a / b rounded up, for b > 0, if that is a polynomial and the bounds of the variables prove it.
QUERN_API std::optional<SInt> divide_up(const SInt& a, int64_t b, std::span<const VarBounds> vars);

// Whether a <= b for all values of the variables; false if that is unknown.
QUERN_API bool proves_le(const SInt& a, const SInt& b, std::span<const VarBounds> vars);

// The one that is smaller or greater for all values of the variables, if the bounds prove it.
QUERN_API std::optional<SInt> min_of(const SInt& a, const SInt& b, std::span<const VarBounds> vars);
QUERN_API std::optional<SInt> max_of(const SInt& a, const SInt& b, std::span<const VarBounds> vars);

// Mixes a value into a hash. The same on every machine and in every run.
inline uint64_t hash_mix(uint64_t seed, uint64_t value) {
  uint64_t x = (seed ^ value) + 0x9e3779b97f4a7c15u + (seed << 6);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace quern
