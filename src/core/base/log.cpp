#include "core/base/log.hpp"

#include <string>

#include <unistd.h>

#include "core/base/printable.hpp"

namespace dstune {

namespace {

// Each line is one write call, so that lines of several ranks in one file do not mix.
void write_line(std::string_view prefix, std::string_view message) {
  std::string line(prefix);
  line.append(printable_lines(message)).append("\n");
  const char* rest = line.data();
  std::size_t left = line.size();
  while (left > 0) {
    const auto written = ::write(STDERR_FILENO, rest, left);
    if (written <= 0) return;  // a closed log must not end the run
    rest += written;
    left -= static_cast<std::size_t>(written);
  }
}

std::string& debug_prefix() {
  static std::string prefix;
  return prefix;
}

}  // namespace

void log_line(std::string_view message) { write_line("", message); }
void log_warning(std::string_view message) { write_line("warning: ", message); }
void log_error(std::string_view message) { write_line("error: ", message); }

void log_debug(std::string_view message) {
  if (!debug_prefix().empty()) write_line(debug_prefix(), message);
}

void enable_debug_log(std::string_view prefix) {
  debug_prefix() = std::string("debug: ").append(prefix).append(" ");
}

}  // namespace dstune
