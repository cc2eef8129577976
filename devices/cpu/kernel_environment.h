#pragma once

#include "quern/codegen/uop/float_environment.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace quern::cpu {

// A FloatEnvironment for kernels, which is cheap where they compute in SSE registers only.
#ifdef __SSE__
class KernelEnvironment {
 public:
  KernelEnvironment() : saved_(_mm_getcsr()) {
    if ((saved_ & ~kHappened) != kDefault) _mm_setcsr(kDefault);
  }
  ~KernelEnvironment() {
    if (_mm_getcsr() != saved_) _mm_setcsr(saved_);
  }
  KernelEnvironment(const KernelEnvironment&) = delete;
  KernelEnvironment& operator=(const KernelEnvironment&) = delete;

 private:
  // All exceptions masked; the low bits only record which have happened.
  static constexpr unsigned kDefault = 0x1f80, kHappened = 0x3f;
  unsigned saved_;
};
#else
using KernelEnvironment = FloatEnvironment;
#endif

}  // namespace quern::cpu
