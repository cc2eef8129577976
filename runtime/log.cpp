#include "quern/runtime/log.h"

#include <cstdlib>
#include <memory>
#include <string>

#include <spdlog/common.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace quern {

spdlog::logger& log() {
  // Never destroyed: kernels may still be compiled while static objects go.
  static spdlog::logger& logger = []() -> spdlog::logger& {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    auto* made = new spdlog::logger("quern", sink);
    made->set_pattern("quern %l: %v");
    const char* wanted = std::getenv("QUERN_LOG");
    std::string level = wanted ? wanted : "warn";
    spdlog::level::level_enum parsed = spdlog::level::from_str(level);
    // from_str gives `off` for what it does not know.
    if (parsed == spdlog::level::off && level != "off") {
      made->warn("QUERN_LOG={}: expected off, error, warn, info, debug or trace", level);
      parsed = spdlog::level::warn;
    }
    made->set_level(parsed);
    return *made;
  }();
  return logger;
}

}  // namespace quern
