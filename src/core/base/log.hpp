// The log of a run: plain lines on stderr, one write each, the same in a terminal and a batch log,
// but that a terminal may have them broken between words, and one more line below them, which is
// rewritten.
#pragma once

#include <cstddef>
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

/// Whether there may be a line below the log: standard error is a terminal, and TERM names one that
/// moves its cursor.
bool can_show_below_log();

/// Shows `text` below all lines of this process, in the place of what was shown there before; ""
/// takes it away. Only where can_show_below_log(): what it writes moves the cursor. A line that is
/// wider than the terminal is cut there. Lines of other processes overwrite it.
void show_below_log(std::string_view text);

/// Breaks lines from now on between words where they are wider than `columns`, with two blanks
/// before what follows; 0: nowhere. A terminal breaks them within words. Called once at start,
/// before any other thread or library logs.
void break_log_lines_at(std::size_t columns);

/// Turns debug lines on; called once at start, before any other thread or library logs.
void enable_debug_log(std::string_view prefix);

}  // namespace dstune
