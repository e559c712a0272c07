// The progress of a run in its log, and on a terminal in a line that is rewritten.
#pragma once

#include <chrono>
#include <string>

#include "core/config/command_line/output_forms.hpp"
#include "core/report/tables/progress.hpp"

namespace dstune {

/// What `asked` stands for in this process: terminal where it is automatic and
/// can_show_below_log().
ProgressStyle resolved(ProgressStyle asked);

/// Writes to the log; `progress` must outlive it. On a terminal the line is taken away at the end
/// of its life.
class ProgressView {
 public:
  ProgressView(ProgressStyle asked, const Progress& progress)
      : style_(resolved(asked)), progress_(progress) {}
  ~ProgressView() { take_away(); }
  ProgressView(const ProgressView&) = delete;
  ProgressView& operator=(const ProgressView&) = delete;

  /// Logs a line on an experiment, unless nothing of them is wanted. What is below on a terminal,
  /// and may be of an experiment that has ended, is rewritten by the next refresh().
  void say(const std::string& line);
  /// Rewrites the line on a terminal, at most twice a second. @param now  seconds since the start
  /// of the run
  void refresh(Seconds now);
  /// Takes the line away: what follows is no progress.
  void take_away() const;

 private:
  using Clock = std::chrono::steady_clock;

  ProgressStyle style_;
  const Progress& progress_;
  Clock::time_point next_{};
};

}  // namespace dstune
