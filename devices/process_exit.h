#pragma once

#include <memory>

namespace quern {

// Guards work of which the process's static objects must not be destroyed in the middle: libraries
// such as LLVM and oneTBB have many, and exit() destroys them while other threads run on.
//
//   ExitGuard guard;    // in each thread, around calls into such a library
//
// When the process begins to exit, work in progress is waited for (a minute at most), and a thread
// that would begin new work stops there for good, since nobody can use what it would return. The
// thread that exits goes on: handlers of std::atexit and destructors of static objects may still
// compile and launch, until a library's own static objects go.
//
// fork() waits for work in progress as well (two seconds at most), since in the child only the
// thread that forked exists, and nobody would open the locks of others. If it waited in vain, the
// child cannot go on with the libraries.
class ExitGuard {
 public:
  ExitGuard();
  ~ExitGuard();
  ExitGuard(const ExitGuard&) = delete;
  ExitGuard& operator=(const ExitGuard&) = delete;

  // The libraries can still be used: their static objects are there, and no lock was left behind.
  static bool has_libraries();
  // Throws DeviceError if not; `work` is for its message: "compiling a kernel".
  void require_libraries(const char* work) const;
  // The process exits. Within a guard that is entered afterwards, it is this thread that does it.
  static bool is_exiting();
  // This process was forked from one that used Quern; threads of before do not exist.
  static bool is_forked();
  // For work that was given up in the middle because of that: leaves the guard and never returns.
  [[noreturn]] void abandon();

  // Registers the waiting with std::atexit: what is registered later is destroyed before. So it is
  // called before a library makes static objects, and again when it may have made some. Costs a
  // little memory each time.
  static void watch();
  // Holds what needs a library to be destroyed, to the end of the process.
  static void keep(std::shared_ptr<void> object);
};

}  // namespace quern
