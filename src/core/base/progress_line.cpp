#include "core/base/progress_line.hpp"

#include <chrono>
#include <utility>

#include <unistd.h>

#include "core/base/text.hpp"

namespace dstune {
namespace {

constexpr Seconds kSilence = 2;
constexpr Seconds kTerminalInterval = 0.5;
constexpr Seconds kLogInterval = 5;
constexpr std::string_view kEraseLine = "\r\033[K";

}  // namespace

ProgressOutput standard_progress() {
  return {::isatty(STDERR_FILENO) == 1,
          [] {
            const auto now = std::chrono::steady_clock::now().time_since_epoch();
            return std::chrono::duration<Seconds>(now).count();
          },
          [](std::string_view text) {
            // A closed log must not end the run.
            (void)!::write(STDERR_FILENO, text.data(), text.size());
          }};
}

ProgressLine::ProgressLine(std::string what, std::size_t total, ProgressOutput output)
    : what_(std::move(what)),
      total_(total),
      output_(std::move(output)),
      next_(output_.now() + kSilence) {}

ProgressLine::~ProgressLine() {
  if (is_shown_ && output_.is_terminal) output_.write(kEraseLine);
}

void ProgressLine::advance() {
  const std::lock_guard lock(mutex_);
  ++done_;
  const Seconds now = output_.now();
  if (now < next_ || done_ == total_) return;
  next_ = now + (output_.is_terminal ? kTerminalInterval : kLogInterval);
  is_shown_ = true;
  const std::string text = concat(what_, " ", done_, " of ", total_);
  output_.write(output_.is_terminal ? concat(kEraseLine, text) : concat(text, "\n"));
}

}  // namespace dstune
