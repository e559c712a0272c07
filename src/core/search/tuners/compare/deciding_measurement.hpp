// Chooses the one of an experiment's measurements by which it is judged.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "core/report/journal/journal.hpp"

namespace dstune {

/// The measurement by which `record`, one of a run's `records`, is judged: the mean of its
/// repetitions (mean_of()), or its own if nothing of the run was repeated. None if it was not
/// repeated but others were, or if it was not measured.
std::optional<Measured> deciding_measurement(const Record& record,
                                             const std::vector<Record>& records);

/// The measurements by which two records can be compared: their deciding ones, or else their first
/// ones if neither ran beside other experiments. None if there are no such measurements.
std::optional<std::pair<Measured, Measured>> comparable_measurements(
    const Record& a, const Record& b, const std::vector<Record>& records);

/// Gives both for one record and many others. It looks once at each of `records`, which must
/// outlive it, as it must what it gives.
class Comparison {
 public:
  Comparison(const Record& one, const std::vector<Record>& records);

  std::optional<std::pair<const Measured*, const Measured*>> with(const Record& other) const;
  /// The deciding_measurement() of any of `records`.
  const Measured* deciding(const Record& record) const;
  /// Whether `other` has the configuration of the one record.
  bool is_one(const Record& other) const;

 private:
  /// The measured repetitions of one configuration.
  struct Repetitions {
    DeepSpeedConfig config;
    std::vector<const Measured*> measured;
    Measured mean;
  };

  const Record& one_;
  const std::vector<Record>& records_;
  std::vector<Repetitions> repetitions_;
};

}  // namespace dstune
