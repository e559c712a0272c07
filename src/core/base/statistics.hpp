// Order statistics of a few measured times.
#pragma once

#include <vector>

namespace dstune {

/// A summary of a set of samples. All members have the unit of the samples.
struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
  double noise_percent = 0;  ///< relative standard deviation (n - 1) of the samples, in percent

  bool operator==(const Summary&) const = default;
};

/// @throws std::invalid_argument  if `samples` is empty
Summary summarize(std::vector<double> samples);

/// The least sample for which at least the share `part`, in (0, 1], of all samples are not larger.
/// @throws std::invalid_argument  if `samples` is empty
double percentile(std::vector<double> samples, double part);

}  // namespace dstune
