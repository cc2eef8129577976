#include "quern/codegen/simplify/index_sum.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "quern/codegen/simplify/simplify.h"
#include "quern/codegen/uop/bounds.h"
#include "quern/codegen/uop/eval.h"

namespace quern {
namespace {

__extension__ using Wide = __int128;

// INT64_MIN counts as overflow too, so that whatever a sum holds can be negated.
bool mul_overflows(int64_t a, int64_t b, int64_t& out) {
  return __builtin_mul_overflow(a, b, &out) || out == INT64_MIN;
}
bool add_overflows(int64_t a, int64_t b, int64_t& out) {
  return __builtin_add_overflow(a, b, &out) || out == INT64_MIN;
}
bool is_constant(UOp u) { return u->is_const() && u->arg != INT64_MIN; }

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

int64_t saturate(Wide v) {
  return v < INT64_MIN ? INT64_MIN : v > INT64_MAX ? INT64_MAX : static_cast<int64_t>(v);
}

Bounds bounds(const IndexSum& sum) {
  Wide lo = sum.constant, hi = sum.constant;
  for (auto [base, k] : sum.terms) {
    Wide a = Wide{base->vmin} * k, b = Wide{base->vmax} * k;
    lo += std::min(a, b);
    hi += std::max(a, b);
  }
  return {saturate(lo), saturate(hi)};
}

// a + b * factor; false on overflow.
bool add_scaled(IndexSum& a, const IndexSum& b, int64_t factor) {
  int64_t product;
  for (auto [base, k] : b.terms) {
    if (mul_overflows(k, factor, product)) return false;
    auto at = std::ranges::lower_bound(a.terms, base->id, {},
                                       [](const IndexSum::Term& t) { return t.base->id; });
    if (at == a.terms.end() || at->base != base) {
      if (product != 0) a.terms.insert(at, {base, product});
    } else {
      if (add_overflows(at->coefficient, product, at->coefficient)) return false;
      if (at->coefficient == 0) a.terms.erase(at);
    }
  }
  return !mul_overflows(b.constant, factor, product) &&
         !add_overflows(a.constant, product, a.constant);
}

IndexSum single(UOp base, int64_t coefficient = 1) { return {{{base, coefficient}}, 0}; }

UOp divisor_source(UOp u, Op op, int64_t& divisor) {
  if (u->op != op || !is_constant(u->src(1))) return nullptr;
  divisor = u->src(1)->arg;
  return u->src(0);
}

// x % c, where the remainder term has coefficient k: looks for the matching quotient term, which is
// (x // c) with coefficient k*c, or ((x // c) % d).
bool recombine_one(Simplifier& s, IndexSum& sum, size_t at) {
  auto [mod, k] = sum.terms[at];
  int64_t c = 0, d = 0, want = 0;
  UOp x = divisor_source(mod, Op::FLOORMOD, c);
  if (!x || mul_overflows(k, c, want)) return false;
  IndexSum quotient = to_sum(s.floordiv(x, c));
  if (quotient.terms.size() == 1 && quotient.constant == 0 && quotient.terms[0].coefficient == 1) {
    UOp q = quotient.terms[0].base;
    for (size_t i = 0; i < sum.terms.size(); ++i) {
      auto [base, factor] = sum.terms[i];
      UOp inner = divisor_source(base, Op::FLOORMOD, d);
      bool whole = base == q, part = inner == q;
      if (factor != want || (!whole && !part)) continue;
      sum.terms.erase(sum.terms.begin() + static_cast<int64_t>(std::max(i, at)));
      sum.terms.erase(sum.terms.begin() + static_cast<int64_t>(std::min(i, at)));
      add_scaled(sum, to_sum(whole ? x : s.floormod(x, c * d)), k);
      return true;
    }
  }
  return false;
}

void recombine(Simplifier& s, IndexSum& sum) {
  if (sum.terms.size() < 2) return;
  for (size_t i = 0; i < sum.terms.size(); ++i)
    if (sum.terms[i].base->op == Op::FLOORMOD && recombine_one(s, sum, i)) {
      recombine(s, sum);
      return;
    }
}

int64_t gcd_of_terms(const IndexSum& sum, int64_t start) {
  for (auto& t : sum.terms) start = std::gcd(start, t.coefficient);
  return start;
}

// sum = g * quotient + rest, with every term of `rest` not divisible by g.
struct Split {
  IndexSum quotient, rest;
};

Split split_by(const IndexSum& sum, int64_t g) {
  Split out;
  for (auto [base, k] : sum.terms)
    if (k % g == 0) out.quotient.terms.push_back({base, k / g});
    else out.rest.terms.push_back({base, k});
  out.quotient.constant = floor_div(sum.constant, g);
  out.rest.constant = floor_mod(sum.constant, g);
  return out;
}

// The largest common factor g > 1 of c and some coefficients whose other terms stay in [0, g):
// dividing by a multiple of g does not see them.
std::optional<std::pair<int64_t, Split>> factor_out(const IndexSum& sum, int64_t c) {
  std::vector<int64_t> candidates;
  for (auto& t : sum.terms) candidates.push_back(std::gcd(c, t.coefficient));
  std::ranges::sort(candidates, std::greater<>());
  for (int64_t g : candidates) {
    if (g <= 1) break;
    Split split = split_by(sum, g);
    Bounds rest = bounds(split.rest);
    if (rest.min >= 0 && rest.max < g) return std::pair(g, std::move(split));
  }
  return std::nullopt;
}

UOp divide(Simplifier& s, const IndexSum& sum, UOp a, int64_t c) {
  Split split = split_by(sum, c);
  if (!split.quotient.terms.empty() || split.quotient.constant != 0) {
    UOp rest = s.floordiv(from_sum(s, split.rest), c);
    return s.add(from_sum(s, std::move(split.quotient)), rest);
  }
  if (auto factored = factor_out(sum, c))
    return s.floordiv(from_sum(s, std::move(factored->second.quotient)), c / factored->first);
  int64_t inner;
  if (UOp x = divisor_source(a, Op::FLOORDIV, inner);
      x && inner > 0 && !mul_overflows(inner, c, inner))
    return s.floordiv(x, inner);
  if (UOp x = divisor_source(a, Op::FLOORMOD, inner); x && inner > 0 && inner % c == 0)
    return s.floormod(s.floordiv(x, c), inner / c);
  return nullptr;
}

// Multiples of c do not change a remainder by c.
IndexSum reduce_modulo(const IndexSum& sum, int64_t c) {
  IndexSum out;
  for (auto [base, k] : sum.terms) {
    int64_t inner, factor = k % c;
    if (factor == 0) continue;
    UOp x = divisor_source(base, Op::FLOORMOD, inner);
    int64_t product;
    bool drops = x && inner > 0 && !mul_overflows(inner, factor, product) && product % c == 0;
    add_scaled(out, drops ? to_sum(x) : single(base), factor);
  }
  out.constant += floor_mod(sum.constant, c);
  if (out.constant < 0 || out.constant >= c) out.constant = floor_mod(out.constant, c);
  return out;
}

bool equal(const IndexSum& a, const IndexSum& b) {
  return a.constant == b.constant &&
         std::ranges::equal(a.terms, b.terms, [](const auto& x, const auto& y) {
           return x.base == y.base && x.coefficient == y.coefficient;
         });
}

UOp modulo(Simplifier& s, const IndexSum& sum, int64_t c) {
  IndexSum reduced = reduce_modulo(sum, c);
  if (!equal(reduced, sum)) return s.floormod(from_sum(s, std::move(reduced)), c);
  if (auto factored = factor_out(sum, c)) {
    auto& [g, split] = *factored;
    UOp high = s.floormod(from_sum(s, std::move(split.quotient)), c / g);
    return s.add(s.mul(high, g), from_sum(s, std::move(split.rest)));
  }
  return nullptr;
}

// -sum where that is cheaper because every term is negative; nothing otherwise.
std::optional<IndexSum> negated(const IndexSum& sum) {
  bool worth = std::ranges::all_of(sum.terms, [](const auto& t) { return t.coefficient < 0; });
  IndexSum result;
  if (!worth || !add_scaled(result, sum, -1)) return std::nullopt;
  return result;
}

// sum < 0, with the terms' sum on one side and a constant on the other.
UOp less_than_zero(Simplifier& s, IndexSum sum) {
  int64_t limit = -sum.constant;
  sum.constant = 0;
  Bounds range = bounds(sum);
  if (range.max < limit || range.min >= limit) return s.graph().boolean(range.max < limit);

  if (sum.terms.size() == 1 && (sum.terms[0].coefficient == 1 || sum.terms[0].coefficient == -1)) {
    // x // c < k  is  x < k*c;  -(x // c) < k  is  x // c >= 1 - k,  x >= (1-k)*c
    int64_t c, product;
    UOp x = divisor_source(sum.terms[0].base, Op::FLOORDIV, c);
    bool negative = sum.terms[0].coefficient < 0;
    if (x && c > 0 && !mul_overflows(negative ? 1 - limit : limit, c, product)) {
      IndexSum inner;
      if (add_scaled(inner, to_sum(x), negative ? -1 : 1) &&
          !add_overflows(inner.constant, negative ? product - 1 : -product, inner.constant))
        return less_than_zero(s, std::move(inner));
    }
  }
  int64_t g = gcd_of_terms(sum, 0);
  if (g > 1) {
    for (auto& t : sum.terms) t.coefficient /= g;
    sum.constant = -ceil_div(limit, g);
    return less_than_zero(s, std::move(sum));
  }
  // g*A + r < g*q  is  A < q  if r stays in [0, g)
  std::vector<int64_t> candidates;
  for (auto& t : sum.terms)
    candidates.push_back(t.coefficient < 0 ? -t.coefficient : t.coefficient);
  std::ranges::sort(candidates, std::greater<>());
  for (int64_t factor : candidates) {
    if (factor <= 1) break;
    Split split = split_by(sum, factor);
    Bounds rest = bounds(split.rest);
    int64_t over = floor_mod(limit, factor);
    if (rest.min < 0 || rest.max >= factor || (over != 0 && rest.max >= over)) continue;
    split.quotient.constant = -ceil_div(limit, factor);
    return less_than_zero(s, std::move(split.quotient));
  }
  if (auto opposite = negated(sum); opposite) {
    UOp right = from_sum(s, std::move(*opposite));
    return s.graph().make(Op::CMPLT, Scalar::Bool, {s.graph().index(-limit), right});
  }
  UOp left = from_sum(s, std::move(sum));
  return s.graph().make(Op::CMPLT, Scalar::Bool, {left, s.graph().index(limit)});
}

}  // namespace

IndexSum to_sum(UOp root) {
  IndexSum out;
  bool overflows = false;
  auto push = [&](UOp t) {
    if (is_constant(t)) overflows |= add_overflows(out.constant, t->arg, out.constant);
    else if (t->op == Op::MUL && is_constant(t->src(1)))
      out.terms.push_back({t->src(0), t->src(1)->arg});
    else out.terms.push_back({t, 1});
  };
  UOp u = root;
  for (; u->op == Op::ADD; u = u->src(0)) push(u->src(1));
  push(u);
  if (overflows) return single(root);
  std::ranges::sort(out.terms, {}, [](const IndexSum::Term& t) { return t.base->id; });
  return out;
}

UOp from_sum(Simplifier& s, IndexSum sum) {
  recombine(s, sum);
  Graph& g = s.graph();
  UOp total = nullptr;
  auto append = [&](UOp t) { total = total ? g.make(Op::ADD, Scalar::Index, {total, t}) : t; };
  for (auto [base, k] : sum.terms)
    append(k == 1 ? base : g.make(Op::MUL, Scalar::Index, {base, g.index(k)}));
  if (!total || sum.constant != 0) append(g.index(sum.constant));
  return total;
}

UOp simplify_index_sum(Simplifier& s, Op op, UOp a, UOp b) {
  IndexSum sum;
  switch (op) {
    case Op::ADD:
      sum = to_sum(a);
      if (!add_scaled(sum, to_sum(b), 1)) return nullptr;
      break;
    case Op::SUB:
      sum = to_sum(a);
      if (!add_scaled(sum, to_sum(b), -1)) return nullptr;
      break;
    case Op::NEG:
      if (!add_scaled(sum, to_sum(a), -1)) return nullptr;
      break;
    case Op::MUL:
      if (is_constant(b)) {
        if (!add_scaled(sum, to_sum(a), b->arg)) return nullptr;
      } else {
        // A product of variables distributes over sums, so that equal polynomials are one node.
        IndexSum left = to_sum(a), right = to_sum(b);
        if (left.terms.size() * right.terms.size() > 16) return nullptr;
        if (left.terms.size() == 1 && right.terms.size() == 1 && left.constant == 0 &&
            right.constant == 0 && left.terms[0].coefficient == 1 &&
            right.terms[0].coefficient == 1)
          return nullptr;
        if (!add_scaled(sum, right, left.constant)) return nullptr;
        for (auto [base, k] : left.terms) {
          IndexSum scaled = single(base, right.constant);
          if (right.constant == 0) scaled.terms.clear();
          for (auto [other, factor] : right.terms)
            if (!add_scaled(scaled, to_sum(s.mul(base, other)), factor)) return nullptr;
          if (!add_scaled(sum, scaled, k)) return nullptr;
        }
      }
      break;
    default: return nullptr;
  }
  return from_sum(s, std::move(sum));
}

UOp simplify_index_division(Simplifier& s, Op op, UOp a, UOp b) {
  if (!b->is_const() || b->arg <= 0) return nullptr;
  int64_t c = b->arg;
  if (c == 1) return op == Op::FLOORDIV ? a : s.graph().index(0);
  int64_t q = floor_div(a->vmin, c);
  if (q == floor_div(a->vmax, c)) return op == Op::FLOORDIV ? s.graph().index(q) : s.add(a, -q * c);
  IndexSum sum = to_sum(a);
  return op == Op::FLOORDIV ? divide(s, sum, a, c) : modulo(s, sum, c);
}

UOp simplify_index_compare(Simplifier& s, Op op, UOp a, UOp b) {
  IndexSum difference = to_sum(a);
  if (!add_scaled(difference, to_sum(b), -1)) return nullptr;
  if (op == Op::CMPLT) return less_than_zero(s, std::move(difference));
  Bounds range = bounds(difference);
  int64_t g = gcd_of_terms(difference, 0);
  if (range.min > 0 || range.max < 0 || (g > 1 && difference.constant % g != 0))
    return s.graph().boolean(false);
  if (difference.terms.empty()) return s.graph().boolean(difference.constant == 0);
  if (auto opposite = negated(difference)) difference = std::move(*opposite);
  int64_t right = -difference.constant;
  difference.constant = 0;
  return s.graph().make(Op::CMPEQ, Scalar::Bool,
                        {from_sum(s, std::move(difference)), s.graph().index(right)});
}

}  // namespace quern
