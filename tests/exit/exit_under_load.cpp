// Ends in the middle of work: exit_under_load WORK [atexit] [fork] MILLISECONDS
//
// WORK is compile, launch or both: detached threads do that in endless loops on a device that is
// never freed, and after so many milliseconds the main thread calls exit(7). `atexit`: a handler
// then compiles and launches once more, and one that comes too late for compiling launches. `fork`:
// a child process does all that first.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <sys/wait.h>

#include "quern/quern.h"

namespace {

using namespace quern;

constexpr int kThreads = 3, kExitCode = 7;
constexpr int64_t kElements = 1 << 20;

// Never freed, as the threads use it to the end.
std::shared_ptr<Device>& device() {
  static auto* made = new std::shared_ptr<Device>(open_device("cpu"));
  return *made;
}

Ast scale(double factor, int64_t size) {
  KernelBuilder k;
  Array x = k.input(Scalar::Float32, {size});
  k.output(exp2(x * factor) + sin(x));
  return k.build();
}

void compile_forever(int thread) {
  for (double factor = thread;; factor += kThreads) compile(scale(factor, 64), device());
}

void launch_forever(const Kernel& kernel) {
  Buffer in = Buffer::copy_of(device(), std::vector<float>(kElements, 1.0F));
  Buffer out(device(), Scalar::Float32, kElements);
  for (;;) kernel.launch({out, in});
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(1);
}

void check_launch(const Kernel& kernel) {
  Buffer in = Buffer::copy_of(device(), std::vector<float>(kElements, 0.0F));
  Buffer out(device(), Scalar::Float32, kElements);
  kernel.launch({out, in});
  if (out.to_vector<float>().back() != 1.0F) fail("a kernel in an exit handler went wrong");
}

Kernel* kernel_for_handlers = nullptr;

// Registered after the device was opened.
void compile_and_launch() { check_launch(compile(scale(0.25, kElements), device())); }

// Registered before, so that it runs when LLVM cannot compile any more.
void launch_only() {
  check_launch(*kernel_for_handlers);
  try {
    compile(scale(0.125, 8), device());
    fail("expected a refusal");
  } catch (const DeviceError&) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::string work = argv[1];
  bool in_handler = false, forks = false;
  for (int i = 2; i < argc - 1; ++i) {
    in_handler |= std::strcmp(argv[i], "atexit") == 0;
    forks |= std::strcmp(argv[i], "fork") == 0;
  }
  if (in_handler) {
    std::atexit(launch_only);
    kernel_for_handlers = new Kernel(compile(scale(0.5, kElements), device()));
    std::atexit(compile_and_launch);
  }
  device();
  std::vector<std::thread> threads;
  if (work != "launch")
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(compile_forever, i);
  if (work != "compile") {
    Kernel kernel = compile(scale(0.5, kElements), device());
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(launch_forever, kernel);
  }
  for (std::thread& t : threads) t.detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(argv[argc - 1])));
  if (forks) {
    pid_t child = ::fork();
    if (child == 0) std::exit(kExitCode);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kExitCode) {
      std::fprintf(stderr, "the forked child ended with status %x\n", status);
      std::_Exit(1);
    }
  }
  std::exit(kExitCode);
}
