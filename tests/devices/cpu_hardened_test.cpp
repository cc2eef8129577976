// Systems that forbid memory that is writable and executable, or executable memory altogether: a
// child process puts such a filter on itself.

#ifdef __linux__

#include <array>
#include <cerrno>
#include <cstddef>
#include <unistd.h>

#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "quern/codegen/error.h"
#include "quern/devices/cpu/cpu.h"
#include "quern/devices/interpreter/interpreter.h"
#include "tests/devices/cpu_kernel.h"
#include "tests/sanitizers.h"

namespace quern {
namespace {

constexpr int kRan = 0, kNoFilter = 77, kRefused = 2, kWrong = 3;

// From now on mmap and mprotect fail if the protection has all of these bits.
bool forbid(uint32_t protection) {
  constexpr uint32_t kProtection = offsetof(seccomp_data, args) + 2 * sizeof(uint64_t);
  std::array<sock_filter, 8> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kProtection),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, protection),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, protection, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog filter = {static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

test::Kernel negate() {
  test::Kernel k;
  UOp out = k.output(Scalar::Int32, 4), in = k.input(Scalar::Int32, 4), zero = k.number(0);
  UOp x = k.load(in, zero, 4);
  k.store(out, zero, k.add(Op::NEG, x->dtype, {x}));
  return k;
}

int run_child(uint32_t forbidden) {
  pid_t child = fork();
  if (child == 0) {
    if (!forbid(forbidden)) _exit(kNoFilter);
    try {
      auto device = make_cpu_device({.threads = 1});
      std::vector<test::Data> data = {test::Data::zeros(Scalar::Int32, 4),
                                      {Scalar::Int32, {1, 2, 3, 4}}};
      test::run(*device, negate(), data);
      _exit(data[0].lanes == std::vector<int64_t>{-1, -2, -3, -4} ? kRan : kWrong);
    } catch (const DeviceError& e) {
      // The reason is said, and another device still works.
      bool said = std::string_view(e.what()).find("xecutable") != std::string_view::npos;
      make_interpreter_device();
      _exit(said ? kRefused : kWrong);
    } catch (...) {
      _exit(kWrong);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(CpuHardened, NeverWritableAndExecutableAtOnce) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers map memory of their own";
  int status = run_child(PROT_WRITE | PROT_EXEC);
  if (status == kNoFilter) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(status, kRan);
}

TEST(CpuHardened, NoExecutableMemoryIsAnError) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers map memory of their own";
  int status = run_child(PROT_EXEC);
  if (status == kNoFilter) GTEST_SKIP() << "no seccomp filters here";
  EXPECT_EQ(status, kRefused);
}

}  // namespace
}  // namespace quern

#endif
