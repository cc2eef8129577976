// Kernels recorded from real models: those of QUERN_CORPUS, or of ../shared/corpus beside the
// checkout, if they are there. Each test takes a sample; the whole corpus is `quern verify` over
// its files.

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "quern/runtime/devices.h"
#include "quern/runtime/kernel_file.h"
#include "quern/runtime/verify.h"
#include "tests/sanitizers.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

fs::path corpus() {
  if (const char* given = std::getenv("QUERN_CORPUS")) return given;
  return fs::path(QUERN_SOURCE_DIR).parent_path() / "shared" / "corpus";
}

constexpr size_t kStep = test::kSanitized ? 97 : 8;
constexpr size_t kSmallFile = 100;  // kernels of which all are taken

class Corpus : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::is_directory(corpus()))
      GTEST_SKIP() << "no kernels at " << corpus() << "; QUERN_CORPUS says where they are";
  }

  template <class F>
  static void for_sample(size_t step, F&& f) {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(corpus()))
      if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
    std::ranges::sort(files);
    for (const fs::path& file : files) {
      std::vector<KernelLine> lines = read_kernel_lines(file.string());
      for (size_t i = 0; i < lines.size(); i += lines.size() <= kSmallFile ? 1 : step) f(lines[i]);
    }
  }

  static void verify_sample(const char* device_name, const VerifyOptions& options, size_t step) {
    std::shared_ptr<Device> device = open_device(device_name);
    size_t passed = 0;
    for_sample(step, [&](const KernelLine& line) {
      VerifyResult result = verify(line.parse(), device, options);
      passed += result.outcome == VerifyResult::Outcome::Passed;
      if (result.outcome == VerifyResult::Outcome::Failed)
        ADD_FAILURE() << line.file << ":" << line.number << " with opts [" << to_string(result.opts)
                      << "]: " << result.error;
    });
    EXPECT_GT(passed, 100u);
  }
};

using Opts = VerifyOptions::Opts;

TEST_F(Corpus, CpuWithoutOpts) {
  verify_sample("cpu", {.opts = Opts::None, .max_flops = 100'000'000, .max_bytes = 64'000'000},
                kStep);
}

TEST_F(Corpus, CpuDefault) {
  verify_sample("cpu", {.max_flops = 1'000'000'000, .max_bytes = 256'000'000}, kStep);
}

TEST_F(Corpus, CpuRandom) {
  verify_sample(
      "cpu", {.opts = Opts::Random, .seed = 7, .max_flops = 100'000'000, .max_bytes = 64'000'000},
      kStep);
}

TEST_F(Corpus, Interpreter) {
  verify_sample("interpreter", {.max_flops = 200'000, .max_bytes = 4'000'000}, kStep);
}

TEST_F(Corpus, InterpreterRandom) {
  verify_sample("interpreter",
                {.opts = Opts::Random, .seed = 7, .max_flops = 200'000, .max_bytes = 4'000'000},
                kStep);
}

TEST_F(Corpus, GroupsRandom) {
  verify_sample("interpreter:gpu",
                {.opts = Opts::Random, .seed = 7, .max_flops = 200'000, .max_bytes = 4'000'000},
                kStep);
}

// The estimates are the recorded ones, and printing keeps a kernel as it is.
TEST_F(Corpus, EstimatesAndPrinting) {
  for_sample(kStep, [](const KernelLine& line) {
    KernelRecord kernel = line.parse();
    nlohmann::json json = nlohmann::json::parse(line.text);
    EXPECT_EQ(kernel.flops(), json["flops"].get<int64_t>()) << kernel.id;
    EXPECT_EQ(kernel.bytes(), json["bytes"].get<int64_t>()) << kernel.id;
    std::string printed = print_kernel(kernel);
    EXPECT_EQ(print_kernel(parse_kernel(printed)), printed) << kernel.id;
  });
}

}  // namespace
}  // namespace quern
