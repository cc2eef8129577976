#include "quern/codegen/schedule/launch_dims.h"

#include <algorithm>
#include <limits>

namespace quern {
namespace {

class Fitter {
 public:
  Fitter(std::span<const SInt> sizes, const int64_t (&limits)[3], std::span<const VarBounds> vars)
      : sizes_(sizes), n_(static_cast<int>(sizes.size())) {
    for (int d = 0; d < 3; ++d)
      limits_[d] = limits[d] > 0 ? limits[d] : std::numeric_limits<int64_t>::max();
    for (const SInt& size : sizes) {
      most_.push_back(size.bounds(vars).max);
      is_constant_ &= size.is_constant();
    }
  }

  std::optional<LaunchDims> run() const {
    // Fast axes keep a dimension as long as possible: neighbouring work items then access
    // neighbouring elements without a division.
    for (int last = std::max(0, n_ - 1); last >= 0; --last)
      for (int middle = std::max(0, last - 1); middle >= 0; --middle)
        if (fits(last, n_, 0) && fits(middle, last, 1) && fits(0, middle, 2))
          return partition(middle, last);
    return linear();
  }

 private:
  int64_t product(int begin, int end) const {
    int64_t n = 1;
    for (int i = begin; i < end; ++i)
      if (__builtin_mul_overflow(n, most_[static_cast<size_t>(i)], &n))
        return std::numeric_limits<int64_t>::max();
    return n;
  }
  bool fits(int begin, int end, int dim) const { return product(begin, end) <= limits_[dim]; }

  LaunchDims partition(int middle, int last) const {
    LaunchDims dims;
    for (int i = 0; i < n_; ++i) {
      int dim = i >= last ? 0 : i >= middle ? 1 : 2;
      dims.dim_of.push_back(dim);
      dims.size[dim] *= sizes_[static_cast<size_t>(i)];
    }
    return dims;
  }

  std::optional<LaunchDims> linear() const {
    LaunchDims dims;
    dims.is_linear = true;
    int64_t total = product(0, n_);
    if (total == std::numeric_limits<int64_t>::max()) return std::nullopt;
    if (is_constant_) {
      int64_t x = largest_divisor(total, limits_[0]), y = largest_divisor(total / x, limits_[1]);
      if (total / x / y <= limits_[2]) {
        dims.size[0] = x;
        dims.size[1] = y;
        dims.size[2] = total / x / y;
        return dims;
      }
    }
    dims.overhangs = true;
    for (int d = 0; d < 3; ++d) {
      int64_t size = std::min(total, limits_[d]);
      dims.size[d] = size;
      total = total / size + (total % size != 0);
    }
    return total > 1 ? std::nullopt : std::optional(dims);
  }

  static int64_t largest_divisor(int64_t n, int64_t limit) {
    if (n <= limit) return n;
    int64_t best = 1;
    for (int64_t d = 1; d <= n / d; ++d) {
      if (n % d != 0) continue;
      if (d <= limit) best = std::max(best, d);
      if (n / d <= limit) return std::max(best, n / d);
    }
    return best;
  }

  std::span<const SInt> sizes_;
  int n_;
  int64_t limits_[3];
  std::vector<int64_t> most_;  // the sizes for the largest values of the variables
  bool is_constant_ = true;
};

}  // namespace

std::optional<LaunchDims> launch_dims(std::span<const SInt> sizes, const int64_t (&limits)[3],
                                      std::span<const VarBounds> vars) {
  return Fitter(sizes, limits, vars).run();
}

}  // namespace quern
