#include "core/base/progress_line.hpp"

#include <chrono>
#include <utility>

#include "core/base/log.hpp"
#include "core/base/text.hpp"

namespace dstune {
namespace {

constexpr Seconds kSilence = 2;
constexpr Seconds kTerminalInterval = 0.5;
constexpr Seconds kLogInterval = 5;

}  // namespace

ProgressOutput standard_progress() {
  const bool is_terminal = can_show_below_log();
  return {is_terminal,
          [] {
            const auto now = std::chrono::steady_clock::now().time_since_epoch();
            return std::chrono::duration<Seconds>(now).count();
          },
          is_terminal ? show_below_log : log_line};
}

ProgressLine::ProgressLine(std::string what, std::size_t total, ProgressOutput output)
    : what_(std::move(what)),
      total_(total),
      output_(std::move(output)),
      next_(output_.now() + kSilence) {}

ProgressLine::~ProgressLine() {
  if (is_shown_ && output_.is_terminal) output_.say("");
}

void ProgressLine::advance() {
  const std::lock_guard lock(mutex_);
  ++done_;
  const Seconds now = output_.now();
  if (now < next_ || done_ == total_) return;
  next_ = now + (output_.is_terminal ? kTerminalInterval : kLogInterval);
  is_shown_ = true;
  output_.say(concat(what_, " ", done_, " of ", total_));
}

}  // namespace dstune
