// Watches during a search whether the machine stays as fast as it was, and how much experiments
// disturb each other that run side by side.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/experiment/experiment.hpp"
#include "core/report/journal/journal.hpp"

namespace dstune {

/// The most, in logarithms, that two measurements of one configuration in a run differ by where
/// nothing is wrong: three times their `noise`, the relative error of their difference, and at
/// least 5 %.
double most_by_noise(double noise);

/// Repeats one experiment, the reference, between the others, alone: the first that was measured.
/// It is due when that costs at most 3 % of the time since it ran last, and at once, as long as all
/// of them cost at most a twentieth, where the ranks' own evidence (CoreUse) says that they have
/// become a tenth faster or slower. A reference that took longer or less beyond noise is repeated
/// at once, and the smaller change of the two counts, so that a busy moment is none.
///
/// Where experiments ran side by side the first reference shows how much longer they take than
/// alone.
///
/// Everything is decided by the times in the records, so that a resumed run goes the same way.
/// There is nothing to watch where time is virtual or means nothing.
class MachineWatch {
 public:
  /// @param time_budget  when the run is to be over: no reference ends later
  explicit MachineWatch(std::optional<Seconds> time_budget = std::nullopt)
      : time_budget_(time_budget) {}

  /// The reference that is to run before anybody learns from `batch`, the records that were
  /// measured last; to be asked again after learn(), until there is none.
  std::optional<Experiment> due(const std::vector<Record>& batch);
  /// Learns how the reference went.
  void learn(const Record& reference);
  /// Sets Record::slowed of a batch for which nothing is due any more.
  void mark(std::vector<Record>& batch);

  /// What was found, a line each; none where nothing was watched.
  std::vector<std::string> remarks() const;

 private:
  /// A reference that differs from those before it.
  struct Change {
    Seconds since = 0;  ///< when the last reference before it ended
    Seconds at = 0;
    double factor = 1;  ///< of the step time, to the first reference
    Seconds step_time = 0;
    int marked = 0;  ///< experiments measured after it, until the next change
    /// Experiments measured between the two references.
    std::vector<std::string> between = {};
  };

  Experiment reference();
  bool is_moved(double factor, const Measured& measured) const;
  bool has_new_pace(const std::vector<Record>& batch) const;
  void take_pace(const Measured& measured, const std::vector<int>& ranks);

  std::optional<Seconds> time_budget_;
  std::optional<Record> base_;     ///< the first reference
  std::optional<Record> beside_;   ///< the same experiment, as it ran beside others
  std::optional<double> doubted_;  ///< the factor of a reference that is to be repeated
  std::map<int, CoreUse> pace_;    ///< by rank: at the last reference
  std::vector<Change> changes_;
  std::vector<std::string> since_last_;  ///< experiments measured since the last reference
  double factor_ = 1;                    ///< at the last reference
  double largest_ = 0;                   ///< change that was within noise, relative
  int references_ = 0;
  int alone_ = 0;      ///< experiments that ran so, where others did not
  Seconds last_ = 0;   ///< when the last reference ended
  Seconds cost_ = 0;   ///< of one reference
  Seconds spent_ = 0;  ///< on all of them
};

}  // namespace dstune
