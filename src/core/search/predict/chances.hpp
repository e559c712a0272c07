// How likely a configuration is to be better than another, by its prediction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/config/tuning_config.hpp"
#include "core/search/predict/predictor.hpp"

namespace dstune {

/// The logarithm of what the metric makes of a step: samples per second, or steps for latency.
/// FLOPs are those of the samples. Larger is better; the differences are those of log(score()).
/// @param samples  of one optimizer step, over all ranks; for tokens, see amount_of()
double log_speed(Metric metric, std::int64_t samples, Seconds step_time);

/// Of a normal distribution's values the part below `z`.
double normal_share_below(double z);

/// A prediction as a log-speed, which is normal.
struct Guess {
  double mean = 0;
  double sd = 0;

  /// That it comes out above `threshold`.
  double chance_above(double threshold) const;
};
Guess guess_of(Metric metric, std::int64_t samples, const Prediction& prediction);

/// That at least one of independent events happens. Where errors are shared by neighbours, as those
/// of a predictor are, the true chance is smaller.
double joint_chance(const std::vector<double>& chances);

/// "12 %", "0.8 %", "less than 0.01 %".
std::string format_chance(double chance);

/// Of a chance that is no larger: "at most 12 %", "less than 0.01 %".
std::string format_upper_chance(double chance);

}  // namespace dstune
