#include "core/search/run/progress_view.hpp"

#include "core/base/log.hpp"

namespace dstune {

ProgressStyle resolved(ProgressStyle asked) {
  if (asked != ProgressStyle::automatic) return asked;
  return can_show_below_log() ? ProgressStyle::terminal : ProgressStyle::lines;
}

void ProgressView::say(const std::string& line) {
  take_away();
  next_ = {};
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
