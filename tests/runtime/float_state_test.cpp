// The caller's floating-point state is his own: compile and launch leave it as it was, and neither
// what they make nor whether they trap depends on it.

#include <cfenv>
#include <cstring>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "quern/devices/cpu/cpu.h"
#include "quern/devices/interpreter/interpreter.h"
#include "quern/quern.h"
#include "quern/runtime/kernel_file.h"

namespace quern {
namespace {

constexpr int64_t kRows = 64;

// Inexact, divides by zero, overflows, and has constants that must be rounded and folded.
Ast make_kernel(int64_t columns) {
  KernelBuilder k;
  Array x = k.input(Scalar::Float32, {kRows, columns});
  Array third = k.constant(Scalar::Float32, 1.0, {1, 1}) / 3.0;
  Array half = (x * 0.1).cast(Scalar::Float16).cast(Scalar::Float32);
  k.output(exp2(x * 200.0) / (x - x) + third + half % 0.7 + x * 1e-30);
  return k.build();
}

// The kernel as text, which has numbers to be read, and its arguments.
struct Case {
  Case(std::shared_ptr<Device> on, int64_t columns, std::optional<std::vector<Opt>> with)
      : device(std::move(on)), opts(std::move(with)) {
    KernelRecord record;
    record.id = "k";
    record.ast = make_kernel(columns);
    text = print_kernel(record);
    std::vector<float> x;
    for (int64_t i = 0; i < kRows * columns; ++i) x.push_back(static_cast<float>(i % 97) * 0.37F);
    in = Buffer::copy_of(device, x);
    out = Buffer(device, Scalar::Float32, kRows * columns);
  }

  void run() { compile(parse_kernel(text).ast, device, {.opts = opts}).launch({out, in}); }

  std::shared_ptr<Device> device;
  std::optional<std::vector<Opt>> opts;
  std::string text;
  Buffer in, out;
};

struct State {
  std::fenv_t control;
  int raised;
#ifdef __SSE__
  unsigned mxcsr;
#endif
};

State state() {
  State s;
  std::fegetenv(&s.control);
  s.raised = std::fetestexcept(FE_ALL_EXCEPT);
#ifdef __SSE__
  s.mxcsr = _mm_getcsr();
#endif
  return s;
}

class FloatState : public testing::Test {
 protected:
  // A launch on one thread, one of tasks on two, and the interpreter.
  void check(const char* what, void (*set)()) {
    std::vector<Case> cases;
    cases.emplace_back(make_cpu_device({.threads = 1}), 8, std::nullopt);
    cases.emplace_back(make_cpu_device({.threads = 2}), 4096,
                       std::vector<Opt>{{OptOp::THREAD, 0, 0}});
    cases.emplace_back(make_interpreter_device(), 8, std::nullopt);
    for (Case& c : cases) {
      c.run();
      std::vector<float> expected = c.out.to_vector<float>();
      std::fenv_t before;
      std::feholdexcept(&before);
      set();
      State wanted = state();
      c.run();
      State after = state();
      std::fesetenv(&before);
      std::vector<float> found = c.out.to_vector<float>();
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
          << what << " on " << c.device->name();
      EXPECT_EQ(std::memcmp(&after.control, &wanted.control, sizeof after.control), 0) << what;
      EXPECT_EQ(after.raised, wanted.raised) << what;
#ifdef __SSE__
      EXPECT_EQ(after.mxcsr, wanted.mxcsr) << what;
#endif
    }
  }
};

TEST_F(FloatState, RoundingModes) {
  check("upward", [] { std::fesetround(FE_UPWARD); });
  check("downward", [] { std::fesetround(FE_DOWNWARD); });
  check("toward zero", [] { std::fesetround(FE_TOWARDZERO); });
}

TEST_F(FloatState, RaisedExceptions) {
  check("none", [] {});
  check("inexact, divide by zero", [] { std::feraiseexcept(FE_INEXACT | FE_DIVBYZERO); });
}

#ifdef __SSE__
TEST_F(FloatState, SubnormalsAsZero) {
  check("flush to zero", [] { _mm_setcsr(_mm_getcsr() | 0x8040); });
}
#endif

#ifdef __GLIBC__
TEST_F(FloatState, Traps) {
  check("traps", [] { feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_INEXACT); });
}
#endif

}  // namespace
}  // namespace quern
