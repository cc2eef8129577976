#include "quern/runtime/file.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "quern/codegen/error.h"

namespace quern {
namespace {

// Closes and, unless it has been renamed, removes.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : target_(target) {
    struct stat info;
    if (::stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      raise<FileError>("{}: it is no regular file, so it cannot be replaced", target);
    static std::atomic<unsigned> count = 0;
    path_ = fmt::format("{}.{}.{}.tmp", target, ::getpid(), count++);
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) {
      path_.clear();
      fail("create");
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(std::span<const std::byte> data) {
    while (!data.empty()) {
      ssize_t n = ::write(fd_, data.data(), data.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("write");
      data = data.subspan(static_cast<size_t>(n));
    }
  }

  void rename() {
    int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0) fail("write");
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail("rename");
    path_.clear();
  }

 private:
  [[noreturn]] void fail(const char* what) {
    int error = errno;
    raise<FileError>("{}: cannot {} it: {}", target_, what, std::strerror(error));
  }

  std::string target_, path_;
  int fd_ = -1;
};

}  // namespace

std::string read_file(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  auto fail = [&](const char* what) {
    int error = errno;
    if (fd >= 0) ::close(fd);
    raise<FileError>("{}: cannot {} it: {}", path, what, std::strerror(error));
  };
  if (fd < 0) fail("open");
  std::string content;
  constexpr size_t kChunk = 1 << 20;
  for (;;) {
    size_t old = content.size();
    content.resize(old + kChunk);
    ssize_t n = ::read(fd, content.data() + old, kChunk);
    if (n < 0 && errno != EINTR) fail("read");
    content.resize(old + static_cast<size_t>(n < 0 ? 0 : n));
    if (n == 0) break;
  }
  ::close(fd);
  return content;
}

void write_file(const std::string& path, std::initializer_list<std::span<const std::byte>> parts) {
  TemporaryFile file(path);
  for (std::span<const std::byte> part : parts) file.write(part);
  file.rename();
}

}  // namespace quern
