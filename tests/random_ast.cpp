#include "tests/random_ast.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "quern/codegen/ast/array.h"
#include "quern/codegen/error.h"
#include "quern/codegen/uop/eval.h"

namespace quern::test {
namespace {

// Floats hold |v| < 2^magnitude in steps of 2^-fraction; together at most so many bits.
struct Exactness {
  int magnitude = 0;
  int fraction = 0;
  int bits() const { return magnitude + fraction; }
};

struct Value {
  Array tensor;
  Exactness exact;
};

int exact_bits(DType dtype) {
  switch (dtype.scalar) {
    case Scalar::Float16: return 10;
    case Scalar::BFloat16: return 7;
    case Scalar::Float32: return 23;
    default: return 52;
  }
}

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  RandomKernel make() {
    if (chance(4)) add_variable();
    shape_ = random_shape();
    dtype_ = random_dtype();
    for (int i = 0, n = pick(1, 3); i < n; ++i) values_.push_back(input());
    for (int i = 0, n = pick(2, 8); i < n; ++i) step();
    finish();
    return std::move(kernel_);
  }

 private:
  int pick(int min, int max) { return std::uniform_int_distribution<int>(min, max)(random_); }
  bool chance(int n) { return pick(1, n) == 1; }

  void add_variable() {
    int min = pick(1, 3), max = min + pick(0, 5);
    symbol_ = builder_.variable("n", min, max);
    kernel_.vars = {pick(min, max)};
    kernel_.var_names = {"n"};
  }

  Shape random_shape() {
    Shape shape;
    for (int i = 0, n = pick(1, 3); i < n; ++i) shape.push_back(pick(1, 9));
    if (symbol_) shape[static_cast<size_t>(pick(0, static_cast<int>(shape.size()) - 1))] = *symbol_;
    return shape;
  }

  DType random_dtype() {
    constexpr Scalar kTypes[] = {
        Scalar::Bool,    Scalar::Int8,     Scalar::UInt8,   Scalar::Int32,
        Scalar::Int32,   Scalar::Int64,    Scalar::UInt64,  Scalar::UInt16,
        Scalar::Float16, Scalar::BFloat16, Scalar::Float32, Scalar::Float32,
        Scalar::Float32, Scalar::Float64,  Scalar::Int16,   Scalar::UInt32};
    return kTypes[pick(0, std::size(kTypes) - 1)];
  }

  bool is_symbolic(const SInt& size) const { return !size.is_constant(); }

  // An input of which some movement has the kernel's shape.
  Value input() {
    DType stored = chance(3) ? random_dtype() : dtype_;
    Shape shape = shape_;
    std::vector<size_t> axes(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    if (chance(3)) std::shuffle(axes.begin(), axes.end(), random_);
    std::vector<PadDim> pads;
    std::vector<MaskDim> parts;
    std::vector<int64_t> steps;
    bool pads_any = false, shrinks_any = false;
    for (SInt& size : shape) {
      PadDim pad{0, 0};
      MaskDim part{0, size};
      int64_t step = chance(5) ? -1 : 1;
      if (chance(6)) {
        size = 1;  // is expanded
        step = 1;
        part = {0, 1};
      } else if (!is_symbolic(size)) {
        int64_t n = size.constant();
        if (chance(4)) {
          int64_t before = pick(0, static_cast<int>(n) - 1);
          int64_t after = pick(0, static_cast<int>(n - 1 - before));
          pad = {before, after};
          n -= before + after;
        }
        int64_t extra = chance(4) ? pick(1, 3) : 0,
                begin = extra > 0 ? pick(0, static_cast<int>(extra)) : 0;
        if (extra > 0 && chance(2)) {
          step *= 2;  // every other element of twice as many
          extra = n;
          begin = 0;
        }
        size = n + extra;
        part = step == 2 || step == -2 ? MaskDim{0, size} : MaskDim{begin, begin + n};
      }
      pads_any |= pad.before != SInt(0) || pad.after != SInt(0);
      shrinks_any |= part.begin != SInt(0) || part.end != size;
      pads.push_back(pad);
      parts.push_back(part);
      steps.push_back(step);
    }
    // The buffer's axes are those of the value, permuted.
    Shape stored_shape(shape.size());
    for (size_t i = 0; i < axes.size(); ++i) stored_shape[axes[i]] = shape[i];
    Array t = builder_.input(stored, stored_shape);
    inputs_.push_back(stored);
    t = t.permute(axes);
    if (shrinks_any) t = t.shrink(parts);
    if (std::ranges::any_of(steps, [](int64_t s) { return s != 1; })) t = t.stride(steps);
    if (pads_any) t = t.pad(pads);
    Exactness exact{3, 3};
    Value value{t.expand(shape_), exact};
    return stored == dtype_ ? value : convert(value, dtype_);
  }

  // Only where no float loses bits.
  Value convert(const Value& v, DType to) {
    DType from = v.tensor.dtype();
    Exactness exact = v.exact;
    if (!from.is_float() && to.is_float()) {
      // Integers may be large: keep a few of their bits.
      Array small = from.is_bool() ? v.tensor : v.tensor % 8.0;
      return {small.cast(to), {3, 0}};
    }
    if (from.is_float() && !to.is_float()) exact = {};
    Array t = v.tensor;
    if (from.is_float() && to.is_float() && exact.bits() > exact_bits(to)) {
      t = where(less(t, 0.0), builder_.constant(from, -1, shape_), 1.0);
      exact = {1, 0};
    }
    return {t.cast(to), exact};
  }

  const Value& any() {
    return values_[static_cast<size_t>(pick(0, static_cast<int>(values_.size()) - 1))];
  }

  void step() {
    Value a = any(), b = any();
    switch (pick(0, 9)) {
      case 0: values_.push_back(input()); break;
      case 1:
      case 2:
      case 3:
        if (auto v = binary(a, b)) values_.push_back(*v);
        break;
      case 4:
        if (auto v = unary(a)) values_.push_back(*v);
        break;
      case 5: values_.push_back(select(a, b)); break;
      case 6: {
        DType to = random_dtype();
        values_.push_back(convert(convert(a, to), dtype_));
        break;
      }
      default:
        if (auto v = reduce(a)) values_.push_back(*v);
        break;
    }
  }

  bool fits(Exactness e) const { return !dtype_.is_float() || e.bits() <= exact_bits(dtype_); }

  std::optional<Value> binary(const Value& a, const Value& b) {
    Array x = a.tensor, y = b.tensor;
    Exactness sum{std::max(a.exact.magnitude, b.exact.magnitude) + 1,
                  std::max(a.exact.fraction, b.exact.fraction)};
    Exactness product{a.exact.magnitude + b.exact.magnitude, a.exact.fraction + b.exact.fraction};
    switch (pick(0, 6)) {
      case 0:
        if (fits(sum)) return Value{x + y, sum};
        break;
      case 1:
        if (fits(sum)) return Value{x - y, sum};
        break;
      case 2:
        if (fits(product)) return Value{x * y, product};
        break;
      case 3: return Value{maximum(x, y), {sum.magnitude - 1, sum.fraction}};
      case 4:
        if (!dtype_.is_float()) return Value{x / y, {}};
        break;
      case 5:
        if (!dtype_.is_float()) return Value{x % y, {}};
        break;
      case 6:
        if (!dtype_.is_float()) return Value{x ^ y, {}};
        break;
    }
    return std::nullopt;
  }

  std::optional<Value> unary(const Value& a) {
    Array x = a.tensor;
    if (chance(2)) return Value{-x, a.exact};
    if (!dtype_.is_float()) return Value{chance(2) ? x / 3.0 : x % 5.0, {}};
    Exactness shifted{a.exact.magnitude + 1, a.exact.fraction};
    if (!fits(shifted)) return std::nullopt;
    return Value{chance(2) ? x * 2.0 : x + 1.0, shifted};
  }

  Value select(const Value& a, const Value& b) {
    const Value& c = any();
    Array condition = chance(2) ? less(c.tensor, a.tensor) : equal(c.tensor, b.tensor);
    if (chance(5)) return convert({condition, {}}, dtype_);
    return {where(condition, a.tensor, b.tensor),
            {std::max(a.exact.magnitude, b.exact.magnitude),
             std::max(a.exact.fraction, b.exact.fraction)}};
  }

  // Reduces some axes and, unless it is the end, repeats the result over them again.
  std::optional<Value> reduce(const Value& a) {
    size_t axis = static_cast<size_t>(pick(0, static_cast<int>(shape_.size()) - 1));
    bool sums = chance(2);
    Exactness exact = a.exact;
    if (sums) exact.magnitude += 4;  // at most 9 elements
    if (!fits(exact) || (dtype_.is_bool() && chance(2))) return std::nullopt;
    int64_t reduced = static_cast<int64_t>(axis);
    Array r = sums ? a.tensor.sum(reduced) : a.tensor.max(reduced);
    return Value{r.expand(shape_), exact};
  }

  void finish() {
    std::vector<Value> results = {values_.back()};
    if (chance(4)) results.push_back(any());
    bool reduces = chance(3) && fits({results[0].exact.magnitude + 4, results[0].exact.fraction});
    // All outputs have one shape.
    int64_t axis = pick(0, static_cast<int>(shape_.size()) - 1);
    for (const Value& v : results) {
      Array t = v.tensor;
      if (reduces && fits({v.exact.magnitude + 4, v.exact.fraction})) t = t.sum(axis);
      else if (reduces) t = t.max(axis);
      builder_.output(t);
    }
    kernel_.ast = builder_.build();
    std::span<const BufferParam> buffers = kernel_.ast.buffers();
    for (const BufferParam& param : buffers) kernel_.buffers.push_back(data(param));
  }

  Values data(const BufferParam& param) {
    Values values = zeros(param.dtype, static_cast<size_t>(param.size));
    for (int64_t& lane : values.lanes) {
      if (param.dtype.is_float()) lane = float_bits(pick(-60, 60) / 8.0);
      else lane = wrap_to(param.dtype, chance(8) ? static_cast<int64_t>(random_()) : pick(-9, 9));
    }
    return values;
  }

  std::mt19937_64 random_;
  KernelBuilder builder_;
  std::optional<SInt> symbol_;
  Shape shape_;
  DType dtype_;
  std::vector<DType> inputs_;
  std::vector<Value> values_;
  RandomKernel kernel_;
};

}  // namespace

std::vector<VarValue> RandomKernel::var_values() const {
  std::vector<VarValue> values;
  for (size_t i = 0; i < vars.size(); ++i) values.push_back({var_names[i], vars[i]});
  return values;
}

RandomKernel random_kernel(uint64_t seed) { return Generator(seed).make(); }

}  // namespace quern::test
