#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

namespace quern {

// The whole content. Throws FileError with the system's reason.
std::string read_file(const std::string& path);

// Puts a file with these parts, one after the other, in the place of `path`: it is written beside
// it and then renamed, so that `path` is at any time the old file or the new one, whole. Throws
// FileError with the system's reason, and removes what it has written.
void write_file(const std::string& path, std::initializer_list<std::span<const std::byte>> parts);

}  // namespace quern
