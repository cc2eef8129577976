#include "quern/devices/process_exit.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <pthread.h>
#include <thread>
#include <utility>
#include <vector>

#include "quern/codegen/error.h"

namespace quern {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);
constexpr auto kPatienceOfFork = std::chrono::seconds(2);
// Threads of a pool that has nothing more to do hold its locks a little longer.
constexpr auto kTimeToFallAsleep = std::chrono::milliseconds(2);
constexpr auto kPause = std::chrono::microseconds(50);

// All of these are constant-initialized and trivially destroyed, so they are there at any time.
std::atomic<int> in_progress = 0;
std::atomic<bool> exiting = false, over = false, forking = false, forked = false, locked = false;
std::atomic<pthread_t> exiting_thread;
thread_local int depth = 0;  // guards of this thread

bool is_exiting_thread() { return ::pthread_equal(exiting_thread.load(), ::pthread_self()) != 0; }

// True if there were any.
bool wait_for_others(std::chrono::steady_clock::duration patience) {
  if (in_progress <= depth) return false;
  auto end = std::chrono::steady_clock::now() + patience;
  while (in_progress > depth && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(kPause);
  return true;
}

void on_exit() {
  if (!exiting.exchange(true)) exiting_thread = ::pthread_self();
  wait_for_others(kPatience);
}

void on_last_exit() {
  on_exit();
  over = true;
}

void before_fork() {
  forking = true;
  if (wait_for_others(kPatienceOfFork)) std::this_thread::sleep_for(kTimeToFallAsleep);
}

void after_fork_in_parent() { forking = false; }

void after_fork_in_child() {
  forking = false;
  forked = true;
  if (in_progress > depth) locked = true;
  in_progress = depth;
}

[[noreturn]] void stop() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

ExitGuard::ExitGuard() {
  ++in_progress;
  if (depth++ > 0) return;  // work within other work goes on to its end
  while (forking) {
    --in_progress;
    std::this_thread::sleep_for(kPause);
    ++in_progress;
  }
  if (exiting && !is_exiting_thread()) abandon();
}

ExitGuard::~ExitGuard() {
  --depth;
  --in_progress;
}

bool ExitGuard::has_libraries() { return !over && !locked; }

void ExitGuard::require_libraries(const char* work) const {
  if (over) raise<DeviceError>("{}: the process exits, and what this needs is gone already", work);
  if (locked)
    raise<DeviceError>("{}: the process was forked while other threads did such things", work);
}

bool ExitGuard::is_exiting() { return exiting; }

bool ExitGuard::is_forked() { return forked; }

void ExitGuard::abandon() {
  --depth;
  --in_progress;
  stop();
}

void ExitGuard::watch() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    std::atexit(on_last_exit);
  });
  std::atexit(on_exit);
}

void ExitGuard::keep(std::shared_ptr<void> object) {
  static std::mutex mutex;
  static auto& kept = *new std::vector<std::shared_ptr<void>>;
  std::lock_guard lock(mutex);
  kept.push_back(std::move(object));
}

}  // namespace quern
