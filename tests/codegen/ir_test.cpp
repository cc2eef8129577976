// What the passes make of a kernel, as text: tests/codegen/ir/*.txt. A file starts with
//
//   kernel NAME            of ir_kernels.cpp
//   target generic         an AVX-512 cpu; `narrow` has vectors of 16 bytes
//   opts none              or default, or a list
//
// and goes on with sections, each a line `== STAGE` and the expected text. Stages are `schedule`,
// `lower`, the names of passes() (generate.h) and `uops`. With QUERN_UPDATE_EXPECTED=1 the files are
// rewritten with what comes out; read the difference before you believe it.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "quern/codegen/generate.h"
#include "quern/codegen/schedule/schedule.h"
#include "quern/codegen/uop/text.h"
#include "tests/codegen/ir_kernels.h"

namespace quern {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return fs::path(QUERN_SOURCE_DIR) / "tests/codegen/ir"; }

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder()))
    if (entry.path().extension() == ".txt") found.push_back(entry.path().stem().string());
  std::ranges::sort(found);
  return found;
}

struct Section {
  std::string stage;
  std::string text;
};

struct IrFile {
  std::map<std::string, std::string> header;
  std::vector<Section> sections;

  static IrFile read(const fs::path& path) {
    IrFile file;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("== ")) file.sections.push_back({line.substr(3), {}});
      else if (!file.sections.empty()) file.sections.back().text += line + "\n";
      else if (size_t blank = line.find(' '); blank != std::string::npos)
        file.header[line.substr(0, blank)] = line.substr(blank + 1);
    }
    return file;
  }

  void write(const fs::path& path) const {
    std::ofstream out(path);
    for (const char* key : {"kernel", "target", "opts"})
      out << key << " " << header.at(key) << "\n";
    for (const Section& s : sections) out << "== " << s.stage << "\n" << s.text;
  }
};

Target target_named(const std::string& name) {
  Target target = generic_cpu_target();
  if (name == "narrow") target.vector_bytes = target.memory_bytes = 16;
  return target;
}

std::map<std::string, std::string> stages(const IrFile& file) {
  Ast ast = test::ir_kernel(file.header.at("kernel"));
  Target target = target_named(file.header.at("target"));
  const std::string& opts = file.header.at("opts");
  Schedule schedule(ast, target);
  if (opts == "default") schedule.apply(default_opts(ast, target));
  else if (opts != "none") schedule.apply(parse_opts(opts));
  std::map<std::string, std::string> made;
  made["schedule"] = schedule.print(false);
  if (!made["schedule"].ends_with('\n')) made["schedule"] += '\n';
  GenerateHooks hooks;
  hooks.after_pass = [&](std::string_view pass, UOp sink) {
    made[std::string(pass)] = print_graph(sink);
  };
  hooks.after_linearize = [&](const LinearUOps& uops) { made["uops"] = print_uops(uops); };
  generate(schedule, hooks);
  return made;
}

class Ir : public testing::TestWithParam<std::string> {};

TEST_P(Ir, IsAsExpected) {
  fs::path path = folder() / (GetParam() + ".txt");
  IrFile file = IrFile::read(path);
  std::map<std::string, std::string> made = stages(file);
  if (std::getenv("QUERN_UPDATE_EXPECTED")) {
    for (Section& s : file.sections) s.text = made.at(s.stage);
    file.write(path);
    return;
  }
  ASSERT_FALSE(file.sections.empty());
  for (const Section& s : file.sections)
    EXPECT_EQ(s.text, made.at(s.stage)) << s.stage << " of " << path;
}

INSTANTIATE_TEST_SUITE_P(Files, Ir, testing::ValuesIn(names()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace quern
