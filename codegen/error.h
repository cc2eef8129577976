#pragma once

// The one family of exceptions. They are thrown at the API and inside the passes, never across a
// thread or a C callback. A message names the kernel part, what is wrong and what was expected.

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "quern/codegen/api.h"

namespace quern {

// Base of everything Quern throws on purpose.
class QUERN_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A malformed kernel: an ill-typed graph, a view outside its buffer, a size that overflows.
class QUERN_API AstError : public Error {
 public:
  using Error::Error;
};

// An opt that is illegal for a schedule. The schedule is as it was before.
class QUERN_API ScheduleError : public Error {
 public:
  using Error::Error;
};

// A compiler or driver refused a program.
class QUERN_API CompileError : public Error {
 public:
  explicit CompileError(const std::string& message, std::string log = {}, std::string source = {})
      : Error(message), log_(std::move(log)), source_(std::move(source)) {}

  // What the compiler printed; may be empty.
  const std::string& log() const { return log_; }
  // The text that was compiled; may be empty.
  const std::string& source() const { return source_; }

 private:
  std::string log_;
  std::string source_;
};

// A device is missing, lost, out of memory, or failed a launch.
class QUERN_API DeviceError : public Error {
 public:
  using Error::Error;
};

// A launch argument is missing or has the wrong size, dtype, device or value.
class QUERN_API ArgumentError : public Error {
 public:
  using Error::Error;
};

// A file is unreadable or its content is malformed.
class QUERN_API FileError : public Error {
 public:
  using Error::Error;
};

// Throws an E whose message is formatted: raise<AstError>("axis {} of {}", i, n).
template <class E, class... A>
[[noreturn]] void raise(fmt::format_string<A...> format, A&&... args) {
  throw E(fmt::format(format, std::forward<A>(args)...));
}

}  // namespace quern
