#pragma once

#include <cfenv>

namespace quern {

// While one lives, this thread rounds to nearest, keeps subnormal numbers and traps nothing. Then
// all is as the caller had it, the record of exceptions that have happened too. Around everything
// that computes with floats: what is compiled must not depend on the state of who asks for it.
class FloatEnvironment {
 public:
  FloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() { std::fesetenv(&saved_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

}  // namespace quern
