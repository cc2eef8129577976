#include <limits>
#include <utility>
#include <vector>

#include "quern/codegen/lower/transcendental.h"

namespace quern {
namespace {

// The bits of 2/pi after the binary point.
constexpr uint64_t kTwoOverPi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

constexpr uint64_t kWord = 0xffffffff;

// |x| = quadrant pi/2 + high + low, with |high| <= pi/4 and low of the size of its rounding error.
// Only the quadrant's last two bits count.
struct Reduced {
  Expr quadrant, high, low;
};

// high + low = a + b, where a is the larger one.
std::pair<Expr, Expr> fast_two_sum(Expr a, Expr b) {
  Expr sum = a + b;
  return {sum, b - (sum - a)};
}

// Word `index + offset` of 2/pi in 32-bit words, word 0 standing before the point, for index in
// 0..4.
Expr narrow_word(Expr index, int offset) {
  auto word = [](int k) {
    return k == 0 ? 0 : kTwoOverPi[(k - 1) / 2] >> (k % 2 ? 32 : 0) & kWord;
  };
  Expr chosen = index.constant(word(4 + offset));
  for (int i = 3; i >= 0; --i) chosen = where(index == i, index.constant(word(i + offset)), chosen);
  return chosen.cast(Scalar::UInt64);
}

// With |x| = m 2^(s + 32 index - 30), m of 24 bits and s in 0..31, the product |x| 2/pi 2^62 modulo
// 2^64 is the sum of m 2^s word(k) 2^(32 (index + 1 - k)).
Reduced reduce_narrow(Expr magnitude, Expr small) {
  Expr exponent = (magnitude >> 23) - 120;
  Expr s = exponent & 31, index = exponent >> 5;
  Expr shifted = ((magnitude & 0x7fffff) | ((s + 150) << 23)).bitcast(Scalar::Float32);
  Expr m = where(small, 0.0, shifted).cast(Scalar::UInt64);
  Expr upper = m >> 32, lower = m & kWord;
  Expr third = narrow_word(index, 2);
  Expr product = ((lower * narrow_word(index, 0)) << 32) + m * narrow_word(index, 1) +
                 upper * third + (lower * third >> 32) + (upper * narrow_word(index, 3) >> 32);
  Expr quadrant = (product + (uint64_t{1} << 61)) >> 62;
  // The fraction times 2^64, as a float of 12 bits and one that holds the rest, times pi/2 as a
  // sum.
  Expr fraction = (product << 2).bitcast(Scalar::Int64);
  Expr head = (fraction.cast(Scalar::Float32).bitcast(Scalar::UInt32) & 0xfffff000)
                  .bitcast(Scalar::Float32);
  Expr tail = (fraction - head.cast(Scalar::Int64)).cast(Scalar::Float32);
  Expr rest = head * 0x1.fb5444p-76 + tail * 0x1.921fb6p-64;
  auto [high, low] = fast_two_sum(head * 0x1.92p-64, rest);
  return {quadrant.cast(Scalar::UInt32), high, low};
}

// Seven 32-bit words of 2/pi from `index` in 0..32 on; words 0 and 1 stand before the point. Barrel
// shifter: pairs of words are moved by 8, 4, 2 and 1 pairs, then by a word.
std::vector<Expr> wide_words(Expr index) {
  auto pair = [&](int k) { return index.constant(k == 0 ? 0 : kTwoOverPi[k - 1]); };
  auto bit = [&](int n) { return (index & (1 << n)) == 0; };
  std::vector<Expr> pairs;
  for (int k = 0; k < 19; ++k) pairs.push_back(pair(k));
  for (int n = 4, step = 8; step > 0; --n, step /= 2) {
    Expr stay = bit(n);
    std::vector<Expr> moved;
    for (int k = 0; k < step + 3; ++k) {
      auto i = static_cast<size_t>(k), j = static_cast<size_t>(k + step);
      moved.push_back(where(stay, pairs[i], pairs[j]));
    }
    pairs = moved;
  }
  Expr near = bit(5), even = bit(0);
  std::vector<Expr> halves;
  for (int k = 0; k < 4; ++k) {
    Expr both = where(near, pairs[static_cast<size_t>(k)], pair(16 + k));
    halves.push_back(both >> 32);
    halves.push_back(both & kWord);
  }
  std::vector<Expr> words;
  for (size_t i = 0; i < 7; ++i) words.push_back(where(even, halves[i], halves[i + 1]));
  return words;
}

// With |x| = m 2^(s + 32 index - 62), m of 53 bits, the product |x| 2/pi 2^126 modulo 2^128 as two
// 64-bit numbers, upper first.
std::pair<Expr, Expr> wide_product(Expr m, Expr exponent) {
  Expr s = exponent & 31;
  // 2^s as the last bits of 2^52 + 2^s.
  Expr power = (((s + 1023) << 52).bitcast(Scalar::Float64) + 0x1p52).bitcast(Scalar::UInt64) ^
               0x4330000000000000;
  Expr lower = (m & kWord) * power;
  Expr upper = (m >> 32) * power + (lower >> 32);
  const Expr limbs[] = {lower & kWord, upper & kWord, upper >> 32};
  std::vector<Expr> words = wide_words(exponent >> 5);
  // Columns of 32 bits, of which the one before the last only gives its carry.
  std::vector<Expr> columns(4, m.constant(0));
  for (int i = 0; i < 3; ++i) {
    for (int j = -1; j < 4; ++j) {
      Expr product = limbs[i] * words[static_cast<size_t>(3 + i - j)];
      if (j >= 0)
        columns[static_cast<size_t>(j)] = columns[static_cast<size_t>(j)] + (product & kWord);
      if (j < 3)
        columns[static_cast<size_t>(j + 1)] = columns[static_cast<size_t>(j + 1)] + (product >> 32);
    }
  }
  Expr second = columns[1] + (columns[0] >> 32);
  Expr third = columns[2] + (second >> 32);
  return {(columns[3] << 32) + third, (second << 32) | (columns[0] & kWord)};
}

// The number of at most 52 bits as a double, times 2^(exponent - 1075).
Expr to_double(Expr bits, int exponent) {
  auto field = static_cast<uint64_t>(exponent) << 52;
  return (bits | field).bitcast(Scalar::Float64) - bits.constant(field).bitcast(Scalar::Float64);
}

Reduced reduce_wide(Expr magnitude, Expr small) {
  constexpr uint64_t kImplicit = uint64_t{1} << 52;
  Expr m = where(small, 0, (magnitude & (kImplicit - 1)) | kImplicit);
  auto [upper, lower] = wide_product(m, (magnitude >> 52) - 1013);
  Expr quadrant = (upper + (uint64_t{1} << 61)) >> 62;
  // The fraction times 2^128: a sign and, but for one unit, a magnitude.
  Expr top = (upper << 2) | (lower >> 62);
  Expr negative = -(top >> 63);
  Expr high_bits = top ^ negative, low_bits = (lower << 2) ^ negative;
  // The same times 2^-64 as a sum of two doubles.
  auto [sum, error] =
      fast_two_sum(to_double(high_bits >> 32, 1107), to_double(high_bits & kWord, 1075));
  auto [a, b] = fast_two_sum(sum, error + to_double(low_bits >> 12, 1023));
  // Times pi/2.
  Expr head = (a.bitcast(Scalar::UInt64) & ~uint64_t{0x7ffffff}).bitcast(Scalar::Float64);
  Expr rest = head * 0x1.110b4611a6263p-90 + (a - head + b) * 0x1.921fb54442d18p-64;
  auto [high, low] = fast_two_sum(head * 0x1.921fb5p-64, rest);
  auto sign = [negative](Expr x) {
    return (x.bitcast(Scalar::UInt64) ^ (negative & (uint64_t{1} << 63))).bitcast(Scalar::Float64);
  };
  return {quadrant, sign(high), sign(low)};
}

struct Kernel {
  Expr sin, cos;
};

// sin and cos of high + low, as fdlibm's k_sin.c and k_cos.c but with the minimax polynomials' own
// coefficients: relative errors below 2^-26.8 and 2^-56.4.
Kernel kernel(Expr high, Expr low, std::initializer_list<double> sin_series,
              std::initializer_list<double> cos_series) {
  Expr z = high * high;
  auto horner = [&](const double* first, const double* last) {
    Expr sum = z.constant(*--last);
    while (last != first) sum = sum * z + *--last;
    return sum;
  };
  Expr cube = z * high;
  Expr sin_rest = horner(sin_series.begin() + 1, sin_series.end());
  Expr sin = high - (z * (low * 0.5 - cube * sin_rest) - low - cube * *sin_series.begin());
  Expr half = z * 0.5;
  Expr near = 1.0 - half;
  Expr cos_rest = horner(cos_series.begin(), cos_series.end());
  Expr cos = near + (1.0 - near - half + (z * (z * cos_rest) - high * low));
  return {sin, cos};
}

Kernel kernel_narrow(Expr high, Expr low) {
  return kernel(high, low, {-0x1.555546p-3, 0x1.11073ap-7, -0x1.99438cp-13},
                {0x1.55554ap-5, -0x1.6c0c32p-10, 0x1.99eb4ap-16});
}

Kernel kernel_wide(Expr high, Expr low) {
  return kernel(high, low,
                {-0x1.5555555555548p-3, 0x1.111111110f7c9p-7, -0x1.a01a019bfd106p-13,
                 0x1.71de35670c6d5p-19, -0x1.ae5e59f140e53p-26, 0x1.5d8fa1ed8363bp-33},
                {0x1.555555555554bp-5, -0x1.6c16c16c14f8ap-10, 0x1.a01a019c838ddp-16,
                 -0x1.27e4f7ea3586bp-22, 0x1.1ee9d75141f53p-29, -0x1.8fa46549d5f44p-37});
}

}  // namespace

Expr expand_sin(Expr x) {
  Scalar real = x.dtype().scalar;
  bool wide = real == Scalar::Float64;
  Scalar uint = wide ? Scalar::UInt64 : Scalar::UInt32;
  uint64_t sign_bit = wide ? uint64_t{1} << 63 : uint64_t{1} << 31;
  uint64_t infinity = wide ? 0x7ff0000000000000 : 0x7f800000;
  uint64_t quarter_pi = wide ? 0x3fe921fb54442d18 : 0x3f490fdb;

  Expr bits = x.bitcast(uint);
  Expr magnitude = bits & (sign_bit - 1);
  Expr small = magnitude < quarter_pi;
  // A small argument reduces to 0, in place of which it is put.
  Reduced r = wide ? reduce_wide(magnitude, small) : reduce_narrow(magnitude, small);
  Expr high = where(small, magnitude.bitcast(real), r.high);
  Kernel values = wide ? kernel_wide(high, r.low) : kernel_narrow(high, r.low);
  Expr value = where((r.quadrant & 1) == 0, values.sin, values.cos);
  Expr sign = ((r.quadrant >> 1) << (wide ? 63 : 31)) ^ (bits & sign_bit);
  Expr result = (value.bitcast(uint) ^ sign).bitcast(real);
  return where(magnitude < infinity, result, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace quern
