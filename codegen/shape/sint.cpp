#include "quern/codegen/shape/sint.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "quern/codegen/error.h"

namespace quern {
namespace {

using Term = SInt::Term;
using Monomial = std::vector<uint32_t>;

// Far above what shapes need; they bound the cost of a hostile expression.
constexpr size_t kMaxDegree = 16;
constexpr size_t kMaxTerms = 256;

int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) raise<AstError>("{} + {} overflows int64", a, b);
  return result;
}

int64_t checked_sub(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_sub_overflow(a, b, &result)) raise<AstError>("{} - {} overflows int64", a, b);
  return result;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) raise<AstError>("{} * {} overflows int64", a, b);
  return result;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return checked_sub(0, a);  // INT64_MIN / -1 traps
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

// Graded lexicographic order, greatest first. It is kept by multiplication, so long division ends.
std::strong_ordering compare(const Monomial& a, const Monomial& b) {
  if (a.size() != b.size()) return b.size() <=> a.size();
  return a <=> b;
}

bool before(const Term& a, const Term& b) { return compare(a.vars, b.vars) < 0; }

Monomial multiply(const Monomial& a, const Monomial& b) {
  if (a.size() + b.size() > kMaxDegree)
    raise<AstError>("a symbolic integer has degree {}, at most {} is supported",
                    a.size() + b.size(), kMaxDegree);
  Monomial result;
  result.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

// a / b, if b divides a.
std::optional<Monomial> divide_monomial(const Monomial& a, const Monomial& b) {
  if (!std::includes(a.begin(), a.end(), b.begin(), b.end())) return std::nullopt;
  Monomial result;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

// The terms of any SInt, a constant's as well.
std::vector<Term> copy_terms(const SInt& x) {
  if (!x.is_constant()) return {x.terms().begin(), x.terms().end()};
  if (x.constant() == 0) return {};
  return {Term{x.constant(), {}}};
}

// The first (greatest) term of a polynomial, or of a constant other than 0.
Term leading_term(const SInt& x) { return x.is_constant() ? Term{x.constant(), {}} : x.terms()[0]; }

}  // namespace

SInt::SInt(std::vector<Term> sorted) {
  if (sorted.empty()) return;
  if (sorted.size() == 1 && sorted[0].vars.empty()) {
    value_ = sorted[0].coef;
    return;
  }
  if (sorted.size() > kMaxTerms)
    raise<AstError>("a symbolic integer has {} terms, at most {} are supported", sorted.size(),
                    kMaxTerms);
  poly_ = std::make_shared<const Poly>(Poly{std::move(sorted)});
}

SInt SInt::variable(uint32_t index) { return SInt(std::vector<Term>{Term{1, {index}}}); }

std::span<const Term> SInt::terms() const {
  return poly_ ? std::span<const Term>(poly_->terms) : std::span<const Term>();
}

SInt SInt::from_terms(std::vector<Term> terms) {
  std::stable_sort(terms.begin(), terms.end(), before);
  std::vector<Term> sum;
  for (Term& term : terms) {
    if (!sum.empty() && sum.back().vars == term.vars) {
      sum.back().coef = checked_add(sum.back().coef, term.coef);
    } else {
      if (!sum.empty() && sum.back().coef == 0) sum.pop_back();
      sum.push_back(std::move(term));
    }
  }
  if (!sum.empty() && sum.back().coef == 0) sum.pop_back();
  return SInt(std::move(sum));
}

SInt operator+(const SInt& a, const SInt& b) {
  if (a.is_constant() && b.is_constant()) return checked_add(a.value_, b.value_);
  std::vector<Term> terms = copy_terms(a);
  for (Term& term : copy_terms(b)) terms.push_back(std::move(term));
  return SInt::from_terms(std::move(terms));
}

SInt operator-(const SInt& a, const SInt& b) {
  if (a.is_constant() && b.is_constant()) return checked_sub(a.value_, b.value_);
  if (a == b) return 0;
  return a + b * SInt(-1);
}

SInt operator*(const SInt& a, const SInt& b) {
  if (a.is_constant() && b.is_constant()) return checked_mul(a.value_, b.value_);
  if (a == SInt(1)) return b;
  if (b == SInt(1)) return a;
  std::vector<Term> left = copy_terms(a);
  std::vector<Term> right = copy_terms(b);
  std::vector<Term> terms;
  terms.reserve(left.size() * right.size());
  for (const Term& x : left)
    for (const Term& y : right)
      terms.push_back({checked_mul(x.coef, y.coef), multiply(x.vars, y.vars)});
  return SInt::from_terms(std::move(terms));
}

bool SInt::operator==(const SInt& other) const {
  if (!poly_ || !other.poly_) return !poly_ && !other.poly_ && value_ == other.value_;
  return poly_ == other.poly_ || poly_->terms == other.poly_->terms;
}

std::strong_ordering SInt::operator<=>(const SInt& other) const {
  if (is_constant() != other.is_constant()) return other.is_constant() <=> is_constant();
  if (is_constant()) return value_ <=> other.value_;
  std::span<const Term> a = terms();
  std::span<const Term> b = other.terms();
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (auto order = compare(a[i].vars, b[i].vars); order != 0) return order;
    if (auto order = a[i].coef <=> b[i].coef; order != 0) return order;
  }
  return a.size() <=> b.size();
}

uint64_t SInt::hash() const {
  if (is_constant()) return hash_mix(1, static_cast<uint64_t>(value_));
  uint64_t result = 2;
  for (const Term& term : terms()) {
    result = hash_mix(result, static_cast<uint64_t>(term.coef));
    result = hash_mix(result, term.vars.size());
    for (uint32_t var : term.vars) result = hash_mix(result, var);
  }
  return result;
}

int64_t SInt::eval(std::span<const int64_t> values) const {
  if (is_constant()) return value_;
  int64_t sum = 0;
  for (const Term& term : terms()) {
    int64_t product = term.coef;
    for (uint32_t var : term.vars) {
      if (var >= values.size())
        raise<AstError>("variable {} has no value, {} values are given", var, values.size());
      product = checked_mul(product, values[var]);
    }
    sum = checked_add(sum, product);
  }
  return sum;
}

SIntDivision divide(const SInt& a, const SInt& b) {
  if (b == SInt(0)) raise<AstError>("division of a symbolic integer by 0");
  if (a.is_constant() && b.is_constant()) {
    int64_t quotient = floor_divide(a.constant(), b.constant());
    // Wraps twice where a is near INT64_MIN: quotient * b may lie below it.
    uint64_t product = static_cast<uint64_t>(quotient) * static_cast<uint64_t>(b.constant());
    return {quotient, static_cast<int64_t>(static_cast<uint64_t>(a.constant()) - product)};
  }
  const Term lead = leading_term(b);
  SInt rest = a;
  std::vector<Term> quotient;
  std::vector<Term> remainder;
  while (rest != SInt(0)) {
    const Term first = leading_term(rest);
    std::optional<Monomial> monomial = divide_monomial(first.vars, lead.vars);
    int64_t coef = monomial ? floor_divide(first.coef, lead.coef) : 0;
    if (coef == 0) {
      remainder.push_back(first);
      rest -= SInt::from_terms({first});
    } else {
      SInt factor = SInt::from_terms({{coef, *monomial}});
      rest -= factor * b;
      quotient.push_back({coef, std::move(*monomial)});
    }
  }
  return {SInt::from_terms(std::move(quotient)), SInt::from_terms(std::move(remainder))};
}

std::optional<SInt> divide_exact(const SInt& a, const SInt& b) {
  if (b == SInt(0)) return std::nullopt;
  if (b == SInt(1)) return a;
  SIntDivision result = divide(a, b);
  if (result.remainder != SInt(0)) return std::nullopt;
  return result.quotient;
}

std::optional<SInt> divide_up(const SInt& a, int64_t b, std::span<const VarBounds> vars) {
  SIntDivision result = divide(a, b);
  VarBounds rest = result.remainder.bounds(vars);
  if (rest.min == 0 && rest.max == 0) return result.quotient;
  if (rest.min > 0 && rest.max <= b) return result.quotient + 1;
  return std::nullopt;
}

bool proves_le(const SInt& a, const SInt& b, std::span<const VarBounds> vars) {
  if (a.is_constant() && b.is_constant()) return a.constant() <= b.constant();
  return a == b || (b - a).bounds(vars).min >= 0;
}

std::optional<SInt> min_of(const SInt& a, const SInt& b, std::span<const VarBounds> vars) {
  if (proves_le(a, b, vars)) return a;
  if (proves_le(b, a, vars)) return b;
  return std::nullopt;
}

std::optional<SInt> max_of(const SInt& a, const SInt& b, std::span<const VarBounds> vars) {
  if (proves_le(a, b, vars)) return b;
  if (proves_le(b, a, vars)) return a;
  return std::nullopt;
}

}  // namespace quern
