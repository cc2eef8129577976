// The parser of uop text: any bytes are refused by CompileError, or print, parse and run (within
// bounds of steps) without harm.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "quern/codegen/error.h"
#include "quern/codegen/uop/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    quern::Graph graph;
    std::string printed = quern::print_uops(quern::parse_uops(text, graph));
    quern::Graph again;
    if (quern::print_uops(quern::parse_uops(printed, again)) != printed) __builtin_trap();
  } catch (const quern::Error&) {
  }
  try {
    quern::Graph graph;
    quern::print_graph(quern::parse_graph(text, graph));
  } catch (const quern::Error&) {
  }
  return 0;
}
