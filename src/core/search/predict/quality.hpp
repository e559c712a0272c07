// How good predictions were.
#pragma once

#include <vector>

namespace dstune {

/// Over measurements, each predicted from the others.
struct PredictorQuality {
  int count = 0;                ///< measurements that could be predicted
  double median_error = 0;      ///< median of |predicted / measured - 1|
  double rank_correlation = 0;  ///< Spearman's; 0 with fewer than three
  double inside_90 = 0;         ///< share of measurements inside the interval of 90 % as the
                                ///< fit alone would have it
  double widening = 1;          ///< by how much intervals are wider than that, >= 1

  bool operator==(const PredictorQuality&) const = default;
};

/// Of ranks, where equal values share the mean of theirs; 0 if either has no two values, or there
/// are fewer than three.
/// @param a, b  equally many
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

/// @param surprises  by measurement: |log(measured / predicted)| in standard deviations
PredictorQuality summarize_quality(const std::vector<double>& predicted,
                                   const std::vector<double>& measured,
                                   const std::vector<double>& surprises);

/// The z of a normal distribution's central 90 %.
constexpr double kInside90 = 1.6448536269514722;

}  // namespace dstune
