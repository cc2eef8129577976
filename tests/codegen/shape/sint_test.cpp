#include "quern/codegen/shape/sint.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <rapidcheck.h>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "quern/codegen/error.h"

namespace quern {
namespace {

constexpr uint32_t kVars = 3;
const std::vector<std::string> kNames = {"i", "start_pos", "n2"};

std::optional<uint32_t> lookup(std::string_view name) {
  auto it = std::ranges::find(kNames, name);
  if (it == kNames.end()) return std::nullopt;
  return static_cast<uint32_t>(it - kNames.begin());
}

SInt parse(std::string_view text) { return SInt::parse(text, lookup); }

// All of the range in every case, not only in late ones.
int64_t number(int64_t low, int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<int64_t>(low, high + 1));
}

SInt var(uint32_t index) { return SInt::variable(index); }

// Sums of up to 4 products of up to 3 variables.
SInt polynomial() {
  SInt sum = number(-9, 9);
  const int64_t terms = number(0, 3);
  for (int64_t t = 0; t < terms; ++t) {
    SInt product = number(-9, 9);
    const int64_t degree = number(0, 3);
    for (int64_t d = 0; d < degree; ++d)
      product *= var(static_cast<uint32_t>(number(0, kVars - 1)));
    sum += product;
  }
  return sum;
}

std::vector<int64_t> values() {
  std::vector<int64_t> result;
  for (uint32_t i = 0; i < kVars; ++i) result.push_back(number(-9, 9));
  return result;
}

// The least and greatest value, by trying all.
VarBounds brute_bounds(const SInt& x, const std::vector<VarBounds>& vars) {
  VarBounds found{INT64_MAX, INT64_MIN};
  for (int64_t a = vars[0].min; a <= vars[0].max; ++a)
    for (int64_t b = vars[1].min; b <= vars[1].max; ++b)
      for (int64_t c = vars[2].min; c <= vars[2].max; ++c) {
        int64_t value = x.eval(std::vector<int64_t>{a, b, c});
        found = {std::min(found.min, value), std::max(found.max, value)};
      }
  return found;
}

std::vector<VarBounds> small_bounds() {
  std::vector<VarBounds> vars;
  for (uint32_t i = 0; i < kVars; ++i) {
    int64_t low = number(-5, 5);
    vars.push_back({low, low + number(0, 8)});
  }
  return vars;
}

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const AstError& error) {
    return error.what();
  }
  return "no error";
}

RC_GTEST_PROP(SInt, AlgebraAgreesWithEvaluation, ()) {
  const SInt a = polynomial();
  const SInt b = polynomial();
  const std::vector<int64_t> at = values();
  const int64_t x = a.eval(at);
  const int64_t y = b.eval(at);
  RC_ASSERT((a + b).eval(at) == x + y);
  RC_ASSERT((a - b).eval(at) == x - y);
  RC_ASSERT((a * b).eval(at) == x * y);
  RC_ASSERT((-a).eval(at) == -x);
}

RC_GTEST_PROP(SInt, EqualPolynomialsAreEqual, ()) {
  const SInt a = polynomial();
  const SInt b = polynomial();
  const SInt c = polynomial();
  RC_ASSERT(a + b == b + a);
  RC_ASSERT(a * b == b * a);
  RC_ASSERT((a + b) * c == a * c + b * c);
  RC_ASSERT(a - a == SInt(0));
  RC_ASSERT((a + b) - b == a);
  RC_ASSERT((a * b).hash() == (b * a).hash());
  RC_ASSERT((a <=> b == 0) == (a == b));
  RC_ASSERT((a < b) == (b > a));
  if (a < b && b < c) RC_ASSERT(a < c);
}

RC_GTEST_PROP(SInt, DivisionGivesBackTheDividend, ()) {
  const SInt a = polynomial();
  const SInt b = polynomial();
  RC_PRE(b != SInt(0));
  const SIntDivision division = divide(a, b);
  RC_ASSERT(division.quotient * b + division.remainder == a);
  RC_ASSERT(divide_exact(a * b, b) == a);
  if (std::optional<SInt> exact = divide_exact(a, b)) RC_ASSERT(*exact * b == a);
}

RC_GTEST_PROP(SInt, DivisionRoundedUp, ()) {
  const SInt a = polynomial();
  const int64_t b = number(1, 9);
  const std::vector<VarBounds> vars = small_bounds();
  std::optional<SInt> up = divide_up(a, b, vars);
  if (a.is_constant()) RC_ASSERT(up.has_value());
  if (!up) return;
  std::vector<int64_t> at;
  for (VarBounds range : vars) at.push_back(number(range.min, range.max));
  const int64_t rest = up->eval(at) * b - a.eval(at);
  RC_ASSERT(rest >= 0);
  RC_ASSERT(rest < b);
}

RC_GTEST_PROP(SInt, BoundsAreSoundAndExactForDegreeOneInEachVariable, ()) {
  const SInt a = polynomial();
  const std::vector<VarBounds> vars = small_bounds();
  const VarBounds bounds = a.bounds(vars);
  const VarBounds found = brute_bounds(a, vars);
  RC_ASSERT(bounds.min <= found.min);
  RC_ASSERT(bounds.max >= found.max);
  bool affine = std::ranges::all_of(a.terms(), [](const SInt::Term& term) {
    return std::ranges::adjacent_find(term.vars) == term.vars.end();
  });
  if (affine) RC_ASSERT(bounds == found);
}

RC_GTEST_PROP(SInt, MinAndMaxArePickedOnlyIfProven, ()) {
  const SInt a = polynomial();
  const SInt b = polynomial();
  const std::vector<VarBounds> vars = small_bounds();
  std::optional<SInt> low = min_of(a, b, vars);
  std::optional<SInt> high = max_of(a, b, vars);
  std::vector<int64_t> at;
  for (VarBounds range : vars) at.push_back(number(range.min, range.max));
  if (low) RC_ASSERT(low->eval(at) == std::min(a.eval(at), b.eval(at)));
  if (high) RC_ASSERT(high->eval(at) == std::max(a.eval(at), b.eval(at)));
}

RC_GTEST_PROP(SInt, PrintsWhatItParses, ()) {
  const SInt a = polynomial();
  RC_ASSERT(parse(a.to_string(kNames)) == a);
}

TEST(SInt, BoundsWhereTermsCancelOrPowersAreMonotone) {
  const std::vector<VarBounds> vars = {{1, 10}, {-3, 3}, {1, 4}};
  const SInt n = var(0);
  EXPECT_EQ((n * n - n).bounds(vars), (VarBounds{0, 90}));
  EXPECT_EQ((n * n - 1 - (n - 1) * n - (n - 1)).bounds(vars), (VarBounds{0, 0}));
  EXPECT_EQ((var(1) * var(1)).bounds(vars), (VarBounds{0, 9}));
  EXPECT_EQ((n * var(2) * 5 - 2).bounds(vars), (VarBounds{3, 198}));
}

TEST(SInt, BoundsSaturate) {
  const std::vector<VarBounds> wide = {{0, INT64_MAX - 1}, {INT64_MIN + 1, 0}};
  EXPECT_EQ((var(0) * 4).bounds(wide).max, INT64_MAX);
  EXPECT_EQ((var(1) * 4).bounds(wide).min, INT64_MIN);
  EXPECT_EQ(var(7).bounds(wide), (VarBounds{INT64_MIN, INT64_MAX}));
  EXPECT_EQ((var(0) - var(7)).bounds(wide), (VarBounds{INT64_MIN, INT64_MAX}));
}

TEST(SInt, ManyVariablesAreExactWhereEachHasOneSign) {
  SInt sum = 0;
  std::vector<VarBounds> vars(20, VarBounds{0, 9});
  for (uint32_t i = 0; i < 20; ++i) sum += var(i) * (i % 2 == 0 ? 3 : -2);
  EXPECT_EQ(sum.bounds(vars), (VarBounds{-180, 270}));
}

TEST(SInt, PrintsTheCorpusSyntax) {
  const SInt pos = var(1);
  EXPECT_EQ(SInt(-7).to_string(kNames), "-7");
  EXPECT_EQ(pos.to_string(kNames), "start_pos");
  EXPECT_EQ((pos * 4).to_string(kNames), "(start_pos*4)");
  EXPECT_EQ((pos * -1).to_string(kNames), "(start_pos*-1)");
  EXPECT_EQ((pos + 1).to_string(kNames), "(start_pos+1)");
  EXPECT_EQ((SInt(384) + pos * 384).to_string(kNames), "((start_pos*384)+384)");
  EXPECT_EQ((pos + var(0)).to_string(kNames), "(i+start_pos)");
  EXPECT_EQ((pos * var(0) * 2).to_string(kNames), "(i*start_pos*2)");
  EXPECT_EQ(pos.to_string({}), "var1");
}

TEST(SInt, Parses) {
  EXPECT_EQ(parse("-12"), SInt(-12));
  EXPECT_EQ(parse(" ( i * 4 ) "), var(0) * 4);
  EXPECT_EQ(parse("i+2*n2"), var(0) + var(2) * 2);
  EXPECT_EQ(parse("((start_pos*384)+384)"), (var(1) + 1) * 384);
  EXPECT_EQ(parse("(i+-1)*(i+1)"), var(0) * var(0) - 1);
  EXPECT_EQ(parse("-9223372036854775808"), SInt(INT64_MIN));
}

TEST(SInt, ParseErrorsNameThePosition) {
  EXPECT_EQ(error_of(""), "expression \"\", position 0: expected a variable, an integer or '('");
  EXPECT_EQ(error_of("(i+"),
            "expression \"(i+\", position 3: expected a variable, an integer or '('");
  EXPECT_EQ(error_of("(i"), "expression \"(i\", position 2: expected ')'");
  EXPECT_EQ(error_of("i j"), "expression \"i j\", position 2: expected an operator or the end");
  EXPECT_EQ(error_of("2*k"), "expression \"2*k\", position 2: no variable \"k\"");
  EXPECT_EQ(error_of("i*-"), "expression \"i*-\", position 2: expected digits after '-'");
  EXPECT_EQ(error_of("9223372036854775808"),
            "expression \"9223372036854775808\", position 0: the integer does not fit int64");
  EXPECT_NE(error_of(std::string("i\0+1", 4)), "no error");
}

TEST(SInt, HostileExpressionsAreRefused) {
  EXPECT_NE(error_of(std::string(1000, '(') + "i" + std::string(1000, ')')), "no error");
  EXPECT_NE(error_of(std::string(100000, '1')), "no error");
  std::string power = "i";
  for (int i = 0; i < 16; ++i) power += "*i";
  EXPECT_NE(error_of(power), "no error");
  SInt wide = 1;
  EXPECT_THROW(for (uint32_t i = 0; i < 9; ++i) wide *= var(i) + 1, AstError);
}

TEST(SInt, OverflowIsAnError) {
  EXPECT_THROW(SInt(INT64_MAX) + 1, AstError);
  EXPECT_THROW(SInt(INT64_MIN) - 1, AstError);
  EXPECT_THROW(SInt(INT64_MAX / 2) * 3, AstError);
  EXPECT_THROW(var(0) * INT64_MAX * 2, AstError);
  EXPECT_THROW((var(0) * INT64_MAX).eval(std::vector<int64_t>{2}), AstError);
  EXPECT_THROW(var(0).eval({}), AstError);
  EXPECT_THROW(divide(SInt(INT64_MIN), -1), AstError);
  const SIntDivision division = divide(SInt(INT64_MIN), 3);
  EXPECT_EQ(division.remainder, SInt(1));
  EXPECT_EQ(divide_exact(5, 0), std::nullopt);
}

TEST(SInt, TermsAreInCanonicalOrder) {
  const SInt x = SInt(7) + var(1) * 3 + var(0) * var(1) - var(0) * var(0) * 2;
  const std::vector<SInt::Term> expected = {{-2, {0, 0}}, {1, {0, 1}}, {3, {1}}, {7, {}}};
  EXPECT_TRUE(std::ranges::equal(x.terms(), expected));
  EXPECT_EQ(SInt::from_terms({expected.rbegin(), expected.rend()}), x);
  EXPECT_TRUE((x - x + 5).is_constant());
  EXPECT_TRUE(SInt(5).terms().empty());
}

}  // namespace
}  // namespace quern
