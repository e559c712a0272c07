#include "core/search/run/progress_view.hpp"

#include <cstdlib>
#include <string_view>

#include <unistd.h>

#include "core/base/log.hpp"

namespace dstune {

ProgressStyle resolved(ProgressStyle asked) {
  if (asked != ProgressStyle::automatic) return asked;
  const char* const kind = std::getenv("TERM");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  const bool moves_cursor = kind != nullptr && *kind != '\0' && std::string_view(kind) != "dumb";
  return moves_cursor && ::isatty(STDERR_FILENO) == 1 ? ProgressStyle::terminal
                                                      : ProgressStyle::lines;
}

void ProgressView::say(const std::string& line) const {
  if (style_ != ProgressStyle::none) log_line(line);
}

void ProgressView::refresh(Seconds now) {
  constexpr auto kBetween = std::chrono::milliseconds(500);
  if (style_ != ProgressStyle::terminal || Clock::now() < next_) return;
  next_ = Clock::now() + kBetween;
  show_below_log(progress_.running_line(now));
}

void ProgressView::take_away() const {
  if (style_ == ProgressStyle::terminal) show_below_log("");
}

}  // namespace dstune
