#include "quern/devices/cpu/pool.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>

#include "quern/codegen/uop/float_environment.h"
#include "quern/devices/process_exit.h"

namespace quern::cpu {
namespace {

// Enough pieces for a thread that is held up to be relieved of its share.
constexpr int64_t kPiecesPerThread = 16;

}  // namespace

struct ThreadPool::Arena {
  // TBB has no more workers than there are processors unless it is told so.
  explicit Arena(int wanted) {
    using tbb::global_control;
    auto limit = [] {
      return global_control::active_value(global_control::max_allowed_parallelism);
    };
    if (static_cast<size_t>(wanted) > limit())
      more.emplace(global_control::max_allowed_parallelism, static_cast<size_t>(wanted));
    arena.initialize(std::min(wanted, static_cast<int>(limit())));
  }

  std::optional<tbb::global_control> more;
  tbb::task_arena arena;
};

ThreadPool::ThreadPool(int threads)
    : arena_(std::make_unique<Arena>(threads > 0 ? threads : tbb::info::default_concurrency())),
      threads_(arena_->arena.max_concurrency()) {}

ThreadPool::~ThreadPool() {
  ExitGuard guard;
  std::shared_ptr<Arena> arena = std::move(arena_);
  if (ExitGuard::is_forked() || !ExitGuard::has_libraries()) ExitGuard::keep(std::move(arena));
}

void ThreadPool::run(int64_t tasks, const std::function<void(int64_t, int64_t)>& f) {
  if (tasks <= 1 || threads_ == 1 || ExitGuard::is_forked()) return f(0, tasks);
  ExitGuard guard;
  FloatEnvironment environment;  // TBB clears the record of exceptions
  const bool is_last = ExitGuard::is_exiting();
  auto is_given_up = [is_last] { return !is_last && ExitGuard::is_exiting(); };
  auto grain = static_cast<size_t>(std::max<int64_t>(1, tasks / (kPiecesPerThread * threads_)));
  arena_->arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<int64_t>(0, tasks, grain),
        [&](const tbb::blocked_range<int64_t>& range) {
          if (!is_given_up()) f(range.begin(), range.end());
        },
        tbb::auto_partitioner());
  });
  if (is_given_up()) guard.abandon();
}

}  // namespace quern::cpu
