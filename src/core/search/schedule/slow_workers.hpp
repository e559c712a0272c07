// Notices a worker that is slower than the others, in its group or in others, because its
// measurements are too slow.
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
  std::string how;       ///< "had 26 % of a core where the others had 99 %"
  bool is_sure = false;  ///< it is slower than a core that was shared for a moment explains
  /// The fixed piece of work shows it, which is the same in every experiment.
  bool by_probe = false;
};

/// Compares what the workers reported of themselves, whatever group they are in: in a group the
/// time that its ranks computed in the same steps, without waiting for each other; over all workers
/// the part of a core that each had while it worked (CoreUse); and over those with the same
/// hardware the speed of a fixed piece of work. A worker is slow if it needs more than 1.3 times as
/// long as the median of the others, or had less of a core by a factor of 1.6; by 3 where more than
/// a quarter of the others had less than three quarters of a core themselves, so that the machine
/// is busy.
class SlowWorkers {
 public:
  /// Learns from an experiment that was measured.
  /// @param workers  those that ran it, in the order of the group
  /// @returns those that looked slow beside workers of other groups too, so that the experiment
  /// should be measured elsewhere
  std::vector<SlowSuspect> look(const std::string& experiment, const Measured& measured,
                                const std::vector<Worker>& workers);

  /// A warning for each worker that was slow in three experiments in a row; each is returned once.
  std::vector<std::string> take_warnings();

  /// Judges the suspects: a step of `experiment` took `there` seconds with them and `elsewhere`
  /// without them, which is its result. If it took more than 1.3 times as long with them, the
  /// suspects that are sure are slow, with a warning; otherwise all are cleared.
  void compare(const std::string& experiment, const std::vector<SlowSuspect>& suspects,
               Seconds there, Seconds elsewhere);

  /// Names a worker that somebody else has found to be slow, with a warning: "takes 2.1 times ...".
  void accuse(const Worker& worker, const std::string& how) { name(worker, how); }

  /// The world ranks that were found to be slow.
  const std::set<int>& ranks() const { return named_; }
  /// What was logged about them, a line each.
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  struct History {
    std::string hardware;
    std::deque<CoreUse> uses;              ///< those of the last experiments
    std::vector<std::string> experiments;  ///< all experiments that it measured
    int in_a_row = 0;                      ///< the last experiments in a row in which it was slow
    // Suspicions that a comparison has refuted are not raised again: a lasting one would double all
    // measurements on this worker.
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
