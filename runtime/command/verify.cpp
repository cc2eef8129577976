#include "quern/runtime/verify.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "quern/codegen/error.h"
#include "quern/runtime/command/command.h"
#include "quern/runtime/devices.h"

namespace quern::command {
namespace {

struct VerifyArguments {
  std::vector<std::string> files;
  std::string device = "cpu", opts = "default", sample;
  VerifyOptions options;
  double max_flops = 2e9, max_bytes = 512e6;
  int jobs = 0;
  bool json = false;
};

struct Failure {
  size_t kernel;
  std::string id, opts, error;
};

struct Summary {
  size_t passed = 0, failed = 0, skipped = 0;
  double seconds = 0;
  std::vector<double> compile_ms;
  std::vector<Failure> failures;
};

// --sample K/N takes the kernels K, K + N, K + 2N, .. of all files together.
std::vector<KernelLine> take_sample(std::vector<KernelLine> lines, const std::string& sample) {
  if (sample.empty()) return lines;
  size_t k = 0, n = 0;
  int end = 0;
  bool ok = std::sscanf(sample.c_str(), "%zu/%zu%n", &k, &n, &end) == 2 &&
            end == static_cast<int>(sample.size()) && k < n;
  if (!ok) raise<ArgumentError>("--sample {}: expected K/N with 0 <= K < N", sample);
  std::vector<KernelLine> taken;
  for (size_t i = k; i < lines.size(); i += n) taken.push_back(std::move(lines[i]));
  return taken;
}

// Calls work(i) for i in 0 .. count - 1 from `jobs` threads. The first exception ends it and is
// thrown.
template <class F>
void run_jobs(size_t count, int jobs, F&& work) {
  std::atomic<size_t> next = 0;
  std::exception_ptr error;
  std::mutex mutex;
  auto loop = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < jobs; ++i) threads.emplace_back(loop);
    loop();
  }
  if (error) std::rethrow_exception(error);
}

std::string summary_line(const Summary& s) {
  return fmt::format("{} passed, {} failed, {} skipped", s.passed, s.failed, s.skipped);
}

void add(Summary& summary, size_t number, const KernelRecord& kernel, VerifyResult result) {
  summary.compile_ms.insert(summary.compile_ms.end(), result.compile_ms.begin(),
                            result.compile_ms.end());
  switch (result.outcome) {
    case VerifyResult::Outcome::Passed: ++summary.passed; break;
    case VerifyResult::Outcome::Skipped: ++summary.skipped; break;
    case VerifyResult::Outcome::Failed:
      ++summary.failed;
      summary.failures.push_back(
          {number, kernel.id, to_string(result.opts), std::move(result.error)});
      break;
  }
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

void report(const VerifyArguments& arguments, const Summary& summary) {
  double median = quantile(summary.compile_ms, 0.5), p90 = quantile(summary.compile_ms, 0.9);
  if (arguments.json) {
    nlohmann::ordered_json failures = nlohmann::ordered_json::array();
    for (const Failure& f : summary.failures)
      failures.push_back({{"id", f.id}, {"opts", f.opts}, {"error", f.error}});
    nlohmann::ordered_json out = {{"passed", summary.passed},
                                  {"failed", summary.failed},
                                  {"skipped", summary.skipped},
                                  {"seconds", summary.seconds},
                                  {"compile_ms", {{"median", median}, {"p90", p90}}},
                                  {"failures", std::move(failures)}};
    return print(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  for (const Failure& f : summary.failures)
    print(fmt::format("{} with opts {}: {}\n", f.id, f.opts.empty() ? "none" : f.opts, f.error));
  print(fmt::format("{:.1f} s on {}; AST to callable: median {:.2f} ms, p90 {:.2f} ms\n{}\n",
                    summary.seconds, arguments.device, median, p90, summary_line(summary)));
}

int verify_files(VerifyArguments& arguments) {
  arguments.options.max_flops = static_cast<int64_t>(std::min(arguments.max_flops, 9e18));
  arguments.options.max_bytes = static_cast<int64_t>(std::min(arguments.max_bytes, 9e18));
  std::vector<KernelLine> lines;
  for (const std::string& file : arguments.files)
    for (KernelLine& line : read_kernel_lines(file)) lines.push_back(std::move(line));
  lines = take_sample(std::move(lines), arguments.sample);
  std::shared_ptr<Device> device = open_device(arguments.device);
  int jobs = arguments.jobs > 0
                 ? arguments.jobs
                 : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));

  // All of them before the first one runs, so that a malformed file has no other effect.
  std::vector<KernelRecord> kernels(lines.size());
  run_jobs(lines.size(), jobs, [&](size_t i) {
    kernels[i] = lines[i].parse();
    lines[i] = {};
  });

  Summary summary;
  auto begin = std::chrono::steady_clock::now();
  {
    Progress progress(kernels.size());
    std::mutex mutex;
    size_t done = 0;
    run_jobs(kernels.size(), jobs, [&](size_t i) {
      VerifyResult result = verify(kernels[i], device, arguments.options);
      std::lock_guard lock(mutex);
      add(summary, i, kernels[i], std::move(result));
      progress.update(++done, summary_line(summary));
    });
  }
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::ranges::sort(summary.failures, {}, &Failure::kernel);
  report(arguments, summary);
  return summary.failed > 0 ? kCheckFailed : kDone;
}

}  // namespace

void add_verify(CLI::App& app, int& exit_code) {
  auto* sub =
      app.add_subcommand("verify", "Runs the kernels of files against their expected values");
  auto a = std::make_shared<VerifyArguments>();
  // CLI::NonNegativeNumber lets NaN pass.
  auto limit = [](const std::string& text) {
    double value = -1;
    bool ok = CLI::detail::lexical_cast(text, value) && value >= 0;
    return ok ? std::string() : text + " is no number of 0 or more";
  };
  sub->add_option("file", a->files, "Kernel files")->required();
  sub->add_option("--device", a->device, "See `quern devices` (default: cpu)");
  sub->add_option("--opts", a->opts, "none, default or random (default: default)")
      ->check(CLI::IsMember({"none", "default", "random"}));
  sub->add_option("--rounds", a->options.rounds, "Random schedules of each kernel (default: 1)")
      ->check(CLI::Range(1, 1'000'000));
  sub->add_option("--seed", a->options.seed, "Of the random schedules (default: 0)")
      ->check(CLI::NonNegativeNumber);
  sub->add_option("--max-flops", a->max_flops, "Skips kernels of more operations (default: 2e9)")
      ->check(limit);
  sub->add_option("--max-bytes", a->max_bytes, "Skips kernels with larger buffers (default: 512e6)")
      ->check(limit);
  sub->add_option("--sample", a->sample, "K/N: every Nth kernel, from number K (of 0 .. N-1) on");
  sub->add_option("--jobs", a->jobs, "Kernels at a time (default: one for each processor)")
      ->check(CLI::Range(1, 1024));
  sub->add_flag("--json", a->json, "Print JSON");
  sub->callback([a, &exit_code] {
    using Opts = VerifyOptions::Opts;
    a->options.opts = a->opts == "none"     ? Opts::None
                      : a->opts == "random" ? Opts::Random
                                            : Opts::Default;
    exit_code = verify_files(*a);
  });
}

}  // namespace quern::command
