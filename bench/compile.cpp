// How long a kernel takes from AST to callable, on one thread, over the kernels of
//   bench_compile [--kernels=FOLDER] [--step=N] [Google Benchmark's flags]
// An iteration compiles every Nth kernel of the folder's files once. The counters are milliseconds
// a kernel: `generate` from AST to source, `compile` from there to machine code, `load` until it
// can be called, `all` their sum.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "quern/codegen/error.h"
#include "quern/codegen/generate.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/runtime/devices.h"
#include "quern/runtime/kernel.h"
#include "quern/runtime/kernel_file.h"

namespace quern {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::vector<Ast> read_kernels(const fs::path& folder, size_t step) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<Ast> kernels;
  size_t number = 0;
  for (const fs::path& file : files)
    for (const KernelLine& line : read_kernel_lines(file.string()))
      if (number++ % step == 0) kernels.push_back(line.parse().ast);
  return kernels;
}

struct Part {
  const char* name;
  std::vector<double> milliseconds = {};
};

double quantile(std::vector<double>& values, double q) {
  auto nth =
      values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, nth);
  return *nth;
}

void ast_to_callable(benchmark::State& state, const std::vector<Ast>& kernels, bool with_opts) {
  std::shared_ptr<Device> device = open_device("cpu");
  const Target& target = device->target();
  std::array<Part, 4> parts = {Part{"generate"}, Part{"compile"}, Part{"load"}, Part{"all"}};
  for (auto _ : state)
    for (const Ast& ast : kernels) {
      std::array<Clock::time_point, 4> at;
      at[0] = Clock::now();
      std::vector<Opt> opts = with_opts ? default_opts(ast, target) : std::vector<Opt>();
      Program program = generate(ast, opts, target);
      at[1] = Clock::now();
      std::vector<std::byte> binary = device->compile(program);
      at[2] = Clock::now();
      Kernel kernel = load(program, binary, device);
      at[3] = Clock::now();
      auto milliseconds = [&](size_t from, size_t to) {
        return std::chrono::duration<double, std::milli>(at[to] - at[from]).count();
      };
      for (size_t i = 0; i < 3; ++i) parts[i].milliseconds.push_back(milliseconds(i, i + 1));
      parts[3].milliseconds.push_back(milliseconds(0, 3));
    }
  for (Part& part : parts) {
    state.counters[std::string(part.name) + "_median"] = quantile(part.milliseconds, 0.5);
    state.counters[std::string(part.name) + "_p90"] = quantile(part.milliseconds, 0.9);
  }
  state.counters["kernels"] = static_cast<double>(kernels.size());
}

// The value of --name=value, which is taken out of the arguments.
std::string take_flag(int& argc, char** argv, std::string_view name, std::string value) {
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument.starts_with(name)) value = argument.substr(name.size());
    else argv[kept++] = argv[i];
  }
  argc = kept;
  return value;
}

int run(int argc, char** argv) {
  std::string folder =
      take_flag(argc, argv, "--kernels=", std::string(QUERN_SOURCE_DIR) + "/examples/kernels");
  size_t step = std::stoul(take_flag(argc, argv, "--step=", "1"));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  std::vector<Ast> kernels = read_kernels(folder, std::max<size_t>(step, 1));
  for (bool with_opts : {false, true})
    benchmark::RegisterBenchmark(with_opts ? "ast_to_callable/default" : "ast_to_callable/none",
                                 [&kernels, with_opts](benchmark::State& state) {
                                   ast_to_callable(state, kernels, with_opts);
                                 })
        ->Unit(benchmark::kMillisecond);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace quern

int main(int argc, char** argv) {
  try {
    return quern::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_compile: %s\n", e.what());
    return 2;
  }
}
