// The log of a run: plain lines on stderr, one write each, the same in a terminal and a batch log.
#pragma once

#include <string_view>

namespace dstune {

/// One line without prefix.
void log_line(std::string_view message);

/// "warning: ...": ends with what to do, and holds the numbers it was decided on.
void log_warning(std::string_view message);

/// "error: ..."
void log_error(std::string_view message);

/// "debug: [rank 5 nodeA] ...", only after enable_debug_log(); the prefix comes from there.
void log_debug(std::string_view message);

/// Called once at start, before any other thread or library logs.
void enable_debug_log(std::string_view prefix);

}  // namespace dstune
