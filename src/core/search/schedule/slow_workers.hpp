// Notices a worker that is slower than the others, in its group or not: what it measures is too
// slow.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/search/schedule/worker_pool.hpp"

namespace dstune {

/// A worker that looks slow in one experiment.
struct SlowSuspect {
  Worker worker;
  std::string how;        ///< "had 26 % of a core where the others had 99 %"
  bool is_sure = false;   ///< by more than a core that was shared for a moment explains
  bool by_probe = false;  ///< by the fixed piece of work, which is the same in every experiment
};

/// Holds what the workers said of themselves against each other, whatever group they are in: in a
/// group what its ranks computed in the same steps, waiting for each other left out; over all
/// workers the part of a core that each had while it worked (CoreUse), and over those with the same
/// hardware how fast a fixed piece of work was. Slow is who needs more than 1.3 times as long as
/// the median of the others, or had less of a core by 1.6; by 3 where more than a quarter of the
/// others had less than three quarters of one themselves, so that the machine is busy.
class SlowWorkers {
 public:
  /// Learns from an experiment that was measured.
  /// @param workers  that ran it, in group order
  /// @returns those that looked slow beside workers of other groups too: to be measured elsewhere
  std::vector<SlowSuspect> look(const std::string& experiment, const Measured& measured,
                                const std::vector<Worker>& workers);

  /// A warning for each worker that was slow in three experiments in a row, once.
  std::vector<std::string> take_warnings();

  /// `experiment` took `there` a step with the suspects and `elsewhere`, which counts, without
  /// them: beyond 1.3 times those that are sure are slow, with a warning; up to that all are
  /// cleared.
  void compare(const std::string& experiment, const std::vector<SlowSuspect>& suspects,
               Seconds there, Seconds elsewhere);

  /// World ranks that were found to be slow.
  const std::set<int>& ranks() const { return named_; }
  /// What was said of them, a line each.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  struct History {
    std::string hardware;
    std::deque<CoreUse> uses;              ///< of the last experiments
    std::vector<std::string> experiments;  ///< that it measured, all of them
    int in_a_row = 0;                      ///< experiments in which it was slow
    // Suspicions that a comparison has shown to be none: a lasting one would double all that runs
    // there.
    bool probe_is_cleared = false;
    int cleared_shares = 0;
  };

  void remember(const std::string& experiment, const Measured& measured,
                const std::vector<Worker>& workers);
  std::optional<SlowSuspect> suspect(const Worker& worker, const CoreUse& use) const;
  void name(const Worker& worker, const std::string& what);

  std::map<int, History> histories_;  ///< by rank
  std::set<int> named_;
  std::vector<std::string> lines_;
  std::vector<std::string> warnings_;
};

}  // namespace dstune
