// Statistics of a few measured times: order, spread, what their mean or median leaves open.
#pragma once

#include <optional>
#include <vector>

namespace dstune {

/// A summary of a set of samples. All members but the last two have the unit of the samples.
struct Summary {
  double median = 0;
  double min = 0;
  double max = 0;
  double noise_percent = 0;  ///< relative standard deviation (n - 1) of the samples, in percent
  /// The number of independent samples that would say as much of the mean, by the correlation r of
  /// neighbours in time: n (1 - r) / (1 + r), at least 2, at most n. 0: not known.
  double independent = 0;

  bool operator==(const Summary&) const = default;
};

/// @param samples  in the order in which they were taken
/// @throws std::invalid_argument  if `samples` is empty
Summary summarize(std::vector<double> samples);

/// The standard error of the mean of `count` correlated samples that are worth `independent` ones,
/// in the unit of their standard deviation `spread`.
double error_of_mean(double spread, int count, double independent);

/// The error of the median of normal samples is this many times that of their mean.
inline constexpr double kErrorOfMedian = 1.2533;

/// The least sample for which at least the share `part`, in (0, 1], of all samples are not larger.
/// @throws std::invalid_argument  if `samples` is empty
double percentile(std::vector<double> samples, double part);

/// A standard deviation and its degrees of freedom.
struct Spread {
  double sd = 0;
  int freedom = 0;  ///< 0: nothing is known of the deviation, which is 0
};

/// The spread within groups of samples, about their own means.
Spread pooled_spread(const std::vector<std::vector<double>>& groups);

/// The chance that Student's t with `freedom` >= 1 degrees of freedom lies outside [-t, t]
/// (Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4).
double student_chance_outside(double t, int freedom);

/// The inverse: the t outside of which Student's t lies with `chance`, in (0, 1).
double student_quantile(double chance, int freedom);

/// Samples that are larger than all others by a gap.
struct SlowPart {
  int count = 0;
  double longer = 0;  ///< mean of theirs over that of the others, minus 1

  bool operator==(const SlowPart&) const = default;
};

/// The slow part of samples that have two modes or a heavy tail; none if they look like one mode.
/// The widest gap in the order of their size must be more than 2 + 260 / n^2 times the standard
/// deviation within both parts, and 5 % of the median, and n at least 6. The part above it may be
/// one sample, the part below has at least a quarter. Of normal samples without the bound of 5 %
/// one set in a hundred is called so (statistics_test.cpp counts).
std::optional<SlowPart> slow_part(std::vector<double> samples);

}  // namespace dstune
