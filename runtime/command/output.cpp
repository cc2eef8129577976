#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "quern/codegen/error.h"
#include "quern/runtime/command/command.h"

namespace quern::command {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void print(std::string_view text) {
  bool ok =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!ok) raise<FileError>("cannot write to stdout: {}", std::strerror(errno));
}

Progress::Progress(size_t total) : total_(total), shown_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(size_t done, std::string_view note) {
  constexpr size_t kWidth = 30;
  constexpr double kInterval = 0.1;
  if (!shown_ || (done < total_ && now() - last_ < kInterval)) return;
  last_ = now();
  size_t filled = total_ == 0 ? kWidth : std::min(kWidth, done * kWidth / total_);
  std::string bar(filled, '#');
  bar.resize(kWidth, '.');
  std::string line = fmt::format("\r[{}] {}/{} {}\x1b[K", bar, done, total_, note);
  std::fputs(line.c_str(), stderr);
}

}  // namespace quern::command
