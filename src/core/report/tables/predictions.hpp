// How predicted step times compare with measured ones, in words.
#pragma once

#include <string>

#include "core/base/units.hpp"

namespace dstune {

/// How good predictions are, over measurements of which each is predicted from the others.
struct PredictorQuality {
  int count = 0;                ///< measurements that could be predicted
  double median_error = 0;      ///< median of |predicted / measured - 1|
  double rank_correlation = 0;  ///< Spearman's; 0 with fewer than three
  double inside_90 = 0;         ///< share of measurements inside the interval of 90 % as the fit
                                ///< alone would have it
  double widening = 1;          ///< by how much intervals are wider than that, >= 1

  bool operator==(const PredictorQuality&) const = default;
};

/// "predicted 812 +- 30 ms (90 %) from the others, measured 835 ms": half of the interval of 90 %.
std::string prediction_text(Seconds predicted, Seconds half_interval, Seconds measured);

/// "step times of 48 experiments, each predicted from the others: median error 3.1 %, rank
/// correlation 0.96, 88 % inside the interval of 90 %, which is 1.3 times wider for that"; "" of
/// fewer than three.
std::string quality_text(const PredictorQuality& quality);

}  // namespace dstune
