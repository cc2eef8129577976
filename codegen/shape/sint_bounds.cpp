#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "quern/codegen/error.h"
#include "quern/codegen/shape/interval.h"
#include "quern/codegen/shape/sint.h"

namespace quern {
namespace {

using Term = SInt::Term;

constexpr VarBounds kAnything{kMinusInfinity, kPlusInfinity};
constexpr int64_t kMaxTrials = 512;  // 8 variables of degree 1, say

VarBounds bounds_of(uint32_t var, std::span<const VarBounds> vars) {
  return var < vars.size() ? vars[var] : kAnything;
}

bool is_infinite(VarBounds x) { return x.min == kMinusInfinity || x.max == kPlusInfinity; }

VarBounds power(VarBounds x, ptrdiff_t exponent) {
  VarBounds result{1, 1};
  for (ptrdiff_t i = 0; i < exponent; ++i) result = multiply_intervals(result, x);
  if (exponent % 2 == 0) result.min = std::max<int64_t>(result.min, 0);
  return result;
}

// Term by term, so that it may be too wide.
VarBounds interval(const SInt& x, std::span<const VarBounds> vars) {
  if (x.is_constant()) return {x.constant(), x.constant()};
  VarBounds sum;
  for (const Term& term : x.terms()) {
    VarBounds product{term.coef, term.coef};
    for (auto it = term.vars.begin(); it != term.vars.end();) {
      auto next = std::upper_bound(it, term.vars.end(), *it);
      product = multiply_intervals(product, power(bounds_of(*it, vars), next - it));
      it = next;
    }
    sum = add_intervals(sum, product);
  }
  return sum;
}

std::vector<uint32_t> variables(const SInt& x) {
  std::vector<uint32_t> vars;
  for (const Term& term : x.terms()) vars.insert(vars.end(), term.vars.begin(), term.vars.end());
  std::sort(vars.begin(), vars.end());
  vars.erase(std::unique(vars.begin(), vars.end()), vars.end());
  return vars;
}

SInt derivative(const SInt& x, uint32_t var) {
  std::vector<Term> terms;
  for (Term term : x.terms()) {
    auto [first, last] = std::equal_range(term.vars.begin(), term.vars.end(), var);
    if (first == last) continue;
    SInt coef = SInt(term.coef) * SInt(last - first);  // checked
    term.coef = coef.constant();
    term.vars.erase(first);
    terms.push_back(std::move(term));
  }
  return SInt::from_terms(std::move(terms));
}

SInt substitute(const SInt& x, uint32_t var, int64_t value) {
  std::vector<Term> terms;
  for (Term term : x.terms()) {
    auto [first, last] = std::equal_range(term.vars.begin(), term.vars.end(), var);
    SInt coef = term.coef;
    for (auto it = first; it != last; ++it) coef *= value;
    term.coef = coef.constant();
    term.vars.erase(first, last);
    terms.push_back(std::move(term));
  }
  return SInt::from_terms(std::move(terms));
}

// The values first, first + step, .. last of a variable.
struct Candidates {
  uint32_t var;
  int64_t first;
  int64_t last;
  int64_t step;
};

// Where x can be least: at the ends of a variable in which it is concave (degree 1 is), anywhere in
// the others. Nothing if that is too much to try.
std::optional<std::vector<Candidates>> candidates(const SInt& x, const std::vector<uint32_t>& used,
                                                  std::span<const VarBounds> vars) {
  std::vector<Candidates> result;
  int64_t total = 1;
  for (uint32_t var : used) {
    VarBounds range = bounds_of(var, vars);
    int64_t length;
    if (is_infinite(range) || __builtin_sub_overflow(range.max, range.min, &length))
      return std::nullopt;
    bool concave = interval(derivative(derivative(x, var), var), vars).max <= 0;
    if (!concave && length >= kMaxTrials) return std::nullopt;
    total *= concave ? 2 : length + 1;
    if (total > kMaxTrials) return std::nullopt;
    result.push_back({var, range.min, range.max, concave ? length : 1});
  }
  return result;
}

int64_t least_of(const SInt& x, const std::vector<Candidates>& tried) {
  std::vector<int64_t> values(tried.back().var + size_t{1});
  for (const Candidates& one : tried) values[one.var] = one.first;
  int64_t found = kPlusInfinity;
  for (size_t i = 0; i < tried.size();) {
    found = std::min(found, x.eval(values));
    // Counts up, the first variable fastest.
    for (i = 0; i < tried.size(); ++i) {
      int64_t& value = values[tried[i].var];
      if (value != tried[i].last) {
        value += tried[i].step;
        break;
      }
      value = tried[i].first;
    }
  }
  return found;
}

// Where x is least as far as `var` goes, if x is monotone in it.
std::optional<int64_t> least_end(const SInt& x, uint32_t var, std::span<const VarBounds> vars) {
  VarBounds range = bounds_of(var, vars);
  SInt by_var = derivative(x, var);
  if (by_var == SInt(0)) return std::nullopt;  // x lost the variable
  if (range.min == range.max) return range.min;
  VarBounds slope = interval(by_var, vars);
  if (slope.min >= 0) return range.min;
  if (slope.max <= 0) return range.max;
  return std::nullopt;
}

// The least value of a non-constant: first fixes every variable in which the polynomial is
// monotone, again and again as each may make it monotone in others, then tries where else it can
// be.
int64_t least(SInt x, std::span<const VarBounds> vars) {
  std::vector<uint32_t> used = variables(x);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t var : used) {
      std::optional<int64_t> at = least_end(x, var, vars);
      if (!at) continue;
      if (*at == kMinusInfinity || *at == kPlusInfinity) return kMinusInfinity;
      x = substitute(x, var, *at);
      if (x.is_constant()) return x.constant();
      changed = true;
    }
    used = variables(x);
  }
  if (std::optional<std::vector<Candidates>> tried = candidates(x, used, vars))
    return least_of(x, *tried);
  return interval(x, vars).min;
}

}  // namespace

VarBounds SInt::bounds(std::span<const VarBounds> vars) const {
  if (is_constant()) return {value_, value_};
  try {
    int64_t low = least(*this, vars);
    int64_t high = least(-*this, vars);
    return {low, high == kMinusInfinity ? kPlusInfinity : -high};
  } catch (const AstError&) {
    return kAnything;  // some step overflows
  }
}

}  // namespace quern
