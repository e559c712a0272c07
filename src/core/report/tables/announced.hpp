// What is announced of each configuration: the figures of its repetitions, never the number by
// which it was chosen, and how far they are certain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/report/journal/journal.hpp"

namespace dstune {

/// A configuration of a run and its figures.
struct Announced {
  /// The record of the configuration. Where it was repeated, its step time and rates are means of
  /// the repetitions, and all else is that of the middle one.
  Record record;
  int runs = 0;  ///< the runs of which the figures are means; 0: not measured
  /// Half of the interval of 95 % about the step time, relative to it. Of two or more runs it is
  /// that of the mean of the runs: by how the repetitions of all configurations scatter (Student's
  /// t), so with what differs from run to run. Of one run it is relative_interval(), which knows
  /// that run alone. None where there is nothing to tell it by.
  ///
  /// The fastest of several that are as good as equal is the luckiest of them. So where others'
  /// means are within two standard errors, the chance of an error is divided by half of their
  /// number: the interval covers the best of them in 95 %.
  std::optional<double> interval = std::nullopt;
};

/// One for each configuration of `records`, in the order of their first records.
std::vector<Announced> announced(const std::vector<Record>& records);

/// The records alone.
std::vector<Record> records_of(const std::vector<Announced>& configurations);

/// "412.6 ms per step +- 1.3 % (95 %, 3 runs), 9.70 samples/s, peak 3.00 GiB"; of one run "(95 %,
/// the steps of one run)". "" if it was not measured.
std::string figures_text(const Announced& configuration);

/// The middle one of the measurements of one configuration, at least one, with the geometric means
/// of their step times and rates, in which their order is that of the means of their log-speeds.
Measured mean_of(std::vector<const Measured*> runs);

}  // namespace dstune
