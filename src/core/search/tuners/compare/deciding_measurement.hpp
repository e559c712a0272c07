// Which of an experiment's measurements speaks for it.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/report/journal/journal.hpp"

namespace dstune {

/// What `record`, of a run's `records`, is judged by: its repetitions' middle one; where nothing of
/// the run was repeated, its own. Null if it was not repeated and others were, or without numbers.
const Measured* deciding_measurement(const Record& record, const std::vector<Record>& records);

/// The measurements by which two can be compared: the deciding ones; else their first, where
/// neither ran beside others. None if there are none.
std::optional<std::pair<const Measured*, const Measured*>> comparable_measurements(
    const Record& a, const Record& b, const std::vector<Record>& records);

/// Both for one record and many others: a look at each of `records`, which must outlive it.
class Comparison {
 public:
  Comparison(const Record& one, const std::vector<Record>& records);

  std::optional<std::pair<const Measured*, const Measured*>> with(const Record& other) const;
  /// deciding_measurement() of any of `records`.
  const Measured* deciding(const Record& record) const;
  /// Whether `other` has the configuration of one.
  bool is_one(const Record& other) const;

 private:
  /// Of one configuration.
  struct Repetitions {
    DeepSpeedConfig config;
    std::vector<const Measured*> measured;
  };

  const Record& one_;
  const std::vector<Record>& records_;
  std::vector<Repetitions> repetitions_;
};

}  // namespace dstune
