// The quality of predictions, by comparison with measurements.
#pragma once

#include <vector>

#include "core/report/tables/predictions.hpp"

namespace dstune {

/// The correlation of the ranks of two lists (Spearman), where equal values share the mean of their
/// ranks; 0 if all values of a list are equal, or if there are fewer than three.
/// @param a, b  lists of equal length
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

/// @param surprises  for each measurement |log(measured / predicted)|, in standard deviations
PredictorQuality summarize_quality(const std::vector<double>& predicted,
                                   const std::vector<double>& measured,
                                   const std::vector<double>& surprises);

/// The central 90 % of a normal distribution lie within so many standard deviations.
constexpr double kInside90 = 1.6448536269514722;

}  // namespace dstune
