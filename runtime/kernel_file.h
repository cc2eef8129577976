#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "quern/codegen/api.h"
#include "quern/codegen/ast/ast.h"
#include "quern/runtime/kernel.h"

namespace quern {

// The content of buffers that a kernel file leaves to a formula (input_data.h).
enum class InputKind : uint8_t { Signed, Positive };

// Values of one output at a few positions.
struct Expectation {
  struct Sample {
    int64_t at = 0;     // element of the buffer
    int64_t value = 0;  // lane bits (codegen/uop/eval.h)
    double tolerance = 0;
  };
  uint32_t buffer = 0;
  std::vector<Sample> samples;
};

// A kernel as it stands in a kernel file: what to compute, on what input, and what comes out.
struct QUERN_API KernelRecord {
  std::string id;
  Ast ast;
  std::vector<int64_t> var_values;  // in the order of ast.vars()
  InputKind input = InputKind::Signed;
  std::vector<Expectation> expect;

  // The estimates of the AST for var_values.
  int64_t flops() const { return ast.flops().eval(var_values); }
  int64_t bytes() const { return ast.bytes(); }
  std::vector<VarValue> vars() const;
};

// Reads one kernel of "kernel JSON v1": an object with nodes, outputs, buffers, vars, and
// optionally id, input, expect. Beside what the corpus uses, a node may be
// {"op":"EXPAND","src":[n],"shape":[..]}, which repeats axes of size 1, and MULACC with 3 sources.
// Throws FileError for text that is not such JSON, with the place, and AstError for a kernel that
// is malformed, with id and node.
QUERN_API KernelRecord parse_kernel(std::string_view json);

// The kernel in one line of JSON, without a line break. Canonical: equal ASTs give equal text;
// reading it back gives an equal record.
QUERN_API std::string print_kernel(const KernelRecord& kernel);

// A line of a kernel file that holds a kernel.
struct QUERN_API KernelLine {
  std::string file;
  int64_t number = 0;  // from 1
  std::string text;

  // parse_kernel with the place in front of its errors' messages.
  KernelRecord parse() const;
};

// The lines of a file that are not blank. Throws FileError if it cannot be read.
QUERN_API std::vector<KernelLine> read_kernel_lines(const std::string& path);

// The kernel with that id, or the only one of the file if `id` is empty. Throws FileError if it is
// not there, and lists the ids.
QUERN_API KernelRecord find_kernel(const std::string& path, std::string_view id);

}  // namespace quern
