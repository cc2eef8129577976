#pragma once

#include <spdlog/logger.h>

namespace quern {

// Quern's own logger, to stderr. Its level is that of the environment variable QUERN_LOG: off,
// error, warn (the default), info, debug or trace.
spdlog::logger& log();

}  // namespace quern
