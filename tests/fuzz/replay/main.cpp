// Runs a fuzz target on the files of folders, where there is no libFuzzer: what was found once is
// tested from then on.

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "quern/runtime/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  size_t count = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::printf("%s\n", entry.path().c_str());
      std::fflush(stdout);  // names the input of a crash
      std::string content = quern::read_file(entry.path().string());
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(content.data()), content.size());
      ++count;
    }
  std::printf("%zu inputs\n", count);
  return count > 0 ? 0 : 1;
}
