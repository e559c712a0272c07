// How good predictions were.
#pragma once

#include <vector>

#include "core/report/tables/predictions.hpp"

namespace dstune {

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
