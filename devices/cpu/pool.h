#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace quern::cpu {

// The threads of a device. They are started when they are first needed.
class ThreadPool {
 public:
  // The calling thread counts as one of them; 0: as many as the process may use.
  explicit ThreadPool(int threads);
  ~ThreadPool();

  int threads() const { return threads_; }
  // Calls f(begin, end) for ranges that together are 0 .. tasks-1, on several threads at once, and
  // returns when all is done. f must not throw. In a forked child all runs on the calling thread.
  void run(int64_t tasks, const std::function<void(int64_t begin, int64_t end)>& f);

 private:
  struct Arena;
  std::unique_ptr<Arena> arena_;
  int threads_;
};

}  // namespace quern::cpu
