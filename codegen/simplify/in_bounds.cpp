#include "quern/codegen/simplify/in_bounds.h"

#include <algorithm>
#include <vector>

#include "quern/codegen/simplify/index_sum.h"

namespace quern {
namespace {

__extension__ using Wide = __int128;

// The comparisons that a gate is the AND of.
std::vector<UOp> conjuncts(UOp gate) {
  std::vector<UOp> out, stack;
  if (gate) stack.push_back(gate);
  while (!stack.empty()) {
    UOp u = stack.back();
    stack.pop_back();
    if (u->op == Op::AND) stack.insert(stack.end(), {u->src(0), u->src(1)});
    else if (u->op == Op::CMPLT && u->src(0)->dtype.is_index() &&
             (u->src(0)->is_const() || u->src(1)->is_const()))
      out.push_back(u);
  }
  return out;
}

int64_t coefficient(const IndexSum& sum, UOp base) {
  for (auto& t : sum.terms)
    if (t.base == base) return t.coefficient;
  return 0;
}

// sum = factor * form + what remains, or 0 if the form's terms do not all occur in that proportion.
int64_t factor_of(const IndexSum& sum, const IndexSum& form) {
  int64_t factor = 0;
  for (auto& t : form.terms) {
    int64_t have = coefficient(sum, t.base);
    if (have == 0 || have % t.coefficient != 0) return 0;
    int64_t ratio = have / t.coefficient;
    if (factor != 0 && ratio != factor) return 0;
    factor = ratio;
  }
  return factor;
}

struct Form {
  IndexSum sum;  // without constant
  Wide min, max;
};

// The linear forms that the comparisons bound, each with what is known of it: `form < c` bounds it
// from above, `c < form` from below.
std::vector<Form> bounded_forms(std::span<const UOp> comparisons) {
  std::vector<Form> forms;
  for (UOp c : comparisons) {
    bool from_above = c->src(1)->is_const();
    UOp bounded = c->src(from_above ? 0 : 1);
    IndexSum sum = to_sum(bounded);
    if (sum.terms.empty()) continue;
    Wide limit = Wide{c->src(from_above ? 1 : 0)->arg} - sum.constant;
    Wide lo = Wide{bounded->vmin} - sum.constant, hi = Wide{bounded->vmax} - sum.constant;
    if (from_above) hi = std::min(hi, limit - 1);
    else lo = std::max(lo, limit + 1);
    sum.constant = 0;
    if (sum.terms[0].coefficient < 0) {
      for (auto& t : sum.terms) t.coefficient = -t.coefficient;
      std::swap(lo, hi);
      lo = -lo;
      hi = -hi;
    }
    auto same = std::ranges::find_if(forms, [&](const Form& f) {
      return std::ranges::equal(f.sum.terms, sum.terms, [](const auto& a, const auto& b) {
        return a.base == b.base && a.coefficient == b.coefficient;
      });
    });
    if (same == forms.end()) {
      forms.push_back({std::move(sum), lo, hi});
    } else {
      same->min = std::max(same->min, lo);
      same->max = std::min(same->max, hi);
    }
  }
  // Longer forms first: they say more about a sum that holds them.
  std::ranges::stable_sort(forms, std::greater<>(),
                           [](const Form& f) { return f.sum.terms.size(); });
  return forms;
}

}  // namespace

bool is_in_bounds(UOp index, UOp gate, int64_t size) {
  if (gate && gate->is_const(0)) return true;
  if (index->vmin >= 0 && index->vmax < size) return true;
  if (!gate) return false;
  std::vector<UOp> comparisons = conjuncts(gate);
  IndexSum sum = to_sum(index);
  Wide lo = sum.constant, hi = sum.constant;
  for (const Form& form : bounded_forms(comparisons)) {
    int64_t factor = factor_of(sum, form.sum);
    if (factor == 0) continue;
    lo += factor > 0 ? form.min * factor : form.max * factor;
    hi += factor > 0 ? form.max * factor : form.min * factor;
    std::erase_if(sum.terms,
                  [&](const IndexSum::Term& t) { return coefficient(form.sum, t.base) != 0; });
  }
  for (auto& t : sum.terms) {
    Wide a = Wide{t.base->vmin} * t.coefficient, b = Wide{t.base->vmax} * t.coefficient;
    lo += std::min(a, b);
    hi += std::max(a, b);
  }
  return lo >= 0 && hi < size;
}

UOp guard(Simplifier& s, UOp index, UOp gate, int64_t size) {
  if (is_in_bounds(index, gate, size)) return gate;
  UOp inside = s.both(s.less(s.graph().index(-1), index), s.less(index, s.graph().index(size)));
  return gate ? s.both(gate, inside) : inside;
}

}  // namespace quern
