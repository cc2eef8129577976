#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "quern/codegen/program.h"

namespace quern::cpu {

class Compiler;

// LLVM compilers for the threads that compile at the same time. Each takes one out and puts it
// back: setting one up takes longer than to compile a small kernel. Thread safe.
class CompilerPool {
 public:
  CompilerPool();
  ~CompilerPool();

  // The program's object file. Throws CompileError, with LLVM's messages and the program's source,
  // if LLVM cannot compile it or if it needs a function that is not on the list of
  // `runtime_symbols`.
  std::vector<std::byte> compile(const Program& program);

 private:
  std::unique_ptr<Compiler> take(const Target& target);
  void put_back(std::unique_ptr<Compiler> compiler);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Compiler>> idle_;
};

std::string assembly(const Program& program);

}  // namespace quern::cpu
