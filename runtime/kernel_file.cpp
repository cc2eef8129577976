#include "quern/runtime/kernel_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "quern/codegen/error.h"

namespace quern {

std::vector<VarValue> KernelRecord::vars() const {
  std::vector<VarValue> values;
  for (size_t i = 0; i < var_values.size(); ++i)
    values.push_back({ast.vars()[i].name, var_values[i]});
  return values;
}

KernelRecord KernelLine::parse() const {
  try {
    return parse_kernel(text);
  } catch (const FileError& e) {
    raise<FileError>("{}:{}: {}", file, number, e.what());
  } catch (const AstError& e) {
    raise<AstError>("{}:{}: {}", file, number, e.what());
  }
}

std::vector<KernelLine> read_kernel_lines(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) raise<FileError>("{}: cannot open it: {}", path, std::strerror(errno));
  std::vector<KernelLine> lines;
  KernelLine line{path, 0, {}};
  while (std::getline(in, line.text)) {
    ++line.number;
    if (line.text.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(line);
  }
  if (in.bad() || !in.eof()) raise<FileError>("{}: cannot read it: {}", path, std::strerror(errno));
  if (lines.empty()) raise<FileError>("{}: no kernels; expected one a line, in JSON", path);
  return lines;
}

KernelRecord find_kernel(const std::string& path, std::string_view id) {
  std::vector<KernelLine> lines = read_kernel_lines(path);
  if (id.empty() && lines.size() == 1) return lines[0].parse();
  constexpr size_t kMaxListed = 10;
  std::string ids;
  size_t count = 0;
  for (const KernelLine& line : lines) {
    // Only a line that may hold the id is worth parsing.
    if (!id.empty() && line.text.find(id) == std::string::npos && count >= kMaxListed) continue;
    KernelRecord kernel = line.parse();
    if (!id.empty() && kernel.id == id) return kernel;
    if (count++ < kMaxListed) ids += (ids.empty() ? "" : ", ") + kernel.id;
    if (id.empty() && count > kMaxListed) break;
  }
  if (lines.size() > kMaxListed) ids += ", ...";
  if (id.empty())
    raise<FileError>("{}: it has {} kernels; choose one by id: {}", path, lines.size(), ids);
  raise<FileError>("{}: no kernel has the id '{}'; there are {}", path, id, ids);
}

}  // namespace quern
