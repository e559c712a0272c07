#include "core/base/log.hpp"

#include <cstdlib>
#include <mutex>
#include <string>

#include <unistd.h>

#include "core/base/line_width.hpp"
#include "core/base/printable.hpp"

namespace dstune {

namespace {

/// What stands below the log, and who may write.
struct Below {
  std::mutex mutex;
  std::string text;  ///< with all that a terminal needs; "": nothing stands there
};

Below& below() {
  static Below shown;
  return shown;
}

constexpr std::string_view kEraseShown = "\r\033[K";

void write_all(std::string_view text) {
  const char* rest = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    const auto written = ::write(STDERR_FILENO, rest, left);
    if (written <= 0) return;  // a closed log must not end the run
    rest += written;
    left -= static_cast<std::size_t>(written);
  }
}

std::size_t& log_columns() {
  static std::size_t columns = 0;
  return columns;
}

// Each line is one write call, so that lines of several ranks in one file do not mix.
/// @param width  where lines are broken unless a terminal's width is known; 0: nowhere
void write_line(std::string_view prefix, std::string_view message, std::size_t width = 0) {
  std::string text = std::string(prefix).append(printable_lines(message));
  if (log_columns() > 0) width = log_columns();
  if (width > 0) text = wrapped(text, width, "  ");
  const std::lock_guard lock(below().mutex);
  std::string line(below().text.empty() ? "" : kEraseShown);
  line.append(text).append("\n").append(below().text);
  write_all(line);
}

std::string& debug_prefix() {
  static std::string prefix;
  return prefix;
}

}  // namespace

void log_line(std::string_view message) { write_line("", message); }
void log_warning(std::string_view message) { write_line("warning: ", message, kLineWidth); }
void log_error(std::string_view message) { write_line("error: ", message); }

void log_debug(std::string_view message) {
  if (!debug_prefix().empty()) write_line(debug_prefix(), message);
}

bool can_show_below_log() {
  const char* const kind = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const bool moves_cursor = kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
  return moves_cursor && ::isatty(STDERR_FILENO) == 1;
}

void show_below_log(std::string_view text) {
  // Without wrapping a line stays one where the terminal is narrower. The cursor goes back to the
  // beginning, so that a line of another process begins there.
  constexpr std::string_view kNoWrap = "\033[?7l";
  constexpr std::string_view kWrap = "\033[?7h\r";
  const std::lock_guard lock(below().mutex);
  if (text.empty() && below().text.empty()) return;
  below().text.clear();
  if (!text.empty()) {
    below().text.append(kNoWrap).append(printable(text)).append(kWrap);
  }
  write_all(std::string(kEraseShown).append(below().text));
}

void break_log_lines_at(std::size_t columns) { log_columns() = columns; }

void enable_debug_log(std::string_view prefix) {
  debug_prefix() = std::string("debug: ").append(prefix).append(" ");
}

}  // namespace dstune
