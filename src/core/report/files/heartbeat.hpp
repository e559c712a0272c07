// The sign of life of a run: status.json written again and again, and a look after the journal.
#pragma once

#include <chrono>

#include "core/report/files/results_directory.hpp"
#include "core/report/journal/journal.hpp"
#include "core/report/tables/progress.hpp"

namespace dstune {

/// All of these must outlive it.
class Heartbeat {
 public:
  Heartbeat(const ResultsDirectory& results, Journal& journal, const Progress& progress)
      : results_(results), journal_(journal), progress_(progress) {}

  /// Looks whether the journal is still there and writes status.json with what is known so far.
  /// @throws Error  if the journal was replaced by another file, or status.json cannot be written
  void beat();

  /// Takes in that there is something new to be said: an experiment began or ended.
  void has_news() { has_news_ = true; }

  /// The same as beat(), if kHeartbeat seconds passed since the last time, or one with news. That
  /// status.json cannot be written is no reason to end a run: it is said once. @throws Error  if
  /// the journal was replaced
  void beat_if_due();

 private:
  using Clock = std::chrono::steady_clock;

  const ResultsDirectory& results_;
  Journal& journal_;
  const Progress& progress_;
  Clock::time_point next_{};
  Clock::time_point next_after_event_{};
  bool has_news_ = false;
  bool said_so_ = false;
};

}  // namespace dstune
