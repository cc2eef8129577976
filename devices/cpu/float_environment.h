#pragma once

#include <cfenv>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace quern::cpu {

// Rounding to nearest and subnormal numbers while one lives, whatever the caller's thread has set.
class FloatEnvironment {
 public:
#ifdef __SSE__
  // The state with all exceptions masked; the low bits only record which have happened.
  FloatEnvironment() : saved_(_mm_getcsr()) {
    if ((saved_ & ~kHappened) != kDefault) _mm_setcsr(kDefault);
  }
  ~FloatEnvironment() {
    if ((saved_ & ~kHappened) != kDefault) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kDefault = 0x1f80, kHappened = 0x3f;
  unsigned saved_;
#else
  FloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif

 public:
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;
};

}  // namespace quern::cpu
