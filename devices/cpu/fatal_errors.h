#pragma once

#include <exception>
#include <string>

namespace quern::cpu {

// LLVM's way to give up in the middle of a compile. Whatever LLVM was working on is left as it was
// and must not be touched again, nor destroyed.
class FatalLlvmError : public std::exception {
 public:
  explicit FatalLlvmError(std::string reason) : reason_(std::move(reason)) {}
  const char* what() const noexcept override { return reason_.c_str(); }

 private:
  std::string reason_;
};

// While one lives, a fatal LLVM error on this thread is thrown as FatalLlvmError instead of ending
// the process. Errors on other threads are left to LLVM. The handler is the process's only one, so
// it is installed no longer than that.
class FatalErrorTrap {
 public:
  FatalErrorTrap();
  ~FatalErrorTrap();
  FatalErrorTrap(const FatalErrorTrap&) = delete;
  FatalErrorTrap& operator=(const FatalErrorTrap&) = delete;
};

}  // namespace quern::cpu
