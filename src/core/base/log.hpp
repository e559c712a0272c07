// The log of a run: plain lines on stderr, one write each, the same in a terminal and a batch log;
// on a terminal there may be one more below them, which is rewritten.
#pragma once

#include <string_view>

namespace dstune {

/// Writes one line without a prefix.
void log_line(std::string_view message);

/// Writes "warning: ...", in lines of at most kLineWidth columns, those after the first indented by
/// two blanks; longer words stay whole. The message should end with what to do, and name the
/// numbers on which it was decided.
void log_warning(std::string_view message);

/// Writes "error: ...".
void log_error(std::string_view message);

/// Writes "debug: [rank 5 nodeA] ...", but only after enable_debug_log(), which gives the prefix.
void log_debug(std::string_view message);

/// Shows `text` below all lines of this process, in the place of what was shown there before; ""
/// takes it away. Only for terminals: what it writes moves the cursor. A line that is wider than
/// the terminal is cut there. Lines of other processes overwrite it.
void show_below_log(std::string_view text);

/// Turns debug lines on; called once at start, before any other thread or library logs.
void enable_debug_log(std::string_view prefix);

}  // namespace dstune
