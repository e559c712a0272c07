// The chance that a configuration is better than another, by its prediction.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/units.hpp"
#include "core/config/tuning_config.hpp"
#include "core/search/predict/predictor.hpp"

namespace dstune {

/// The logarithm of the metric's speed: samples per second, or steps per second for latency; FLOPs
/// are proportional to the samples. Larger is better, and differences equal those of log(score()).
/// @param samples  the samples of one optimizer step over all ranks; for tokens, see amount_of()
double log_speed(Metric metric, std::int64_t samples, Seconds step_time);

/// The part of a normal distribution that lies below `z` standard deviations.
double normal_share_below(double z);

/// A prediction as a log-speed, which has a normal distribution.
struct Guess {
  double mean = 0;
  double sd = 0;

  /// The chance that the log-speed comes out above `threshold`.
  double chance_above(double threshold) const;
};
Guess guess_of(Metric metric, std::int64_t samples, const Prediction& prediction);

/// The chance for people: "12 %", "0.8 %", "less than 0.01 %".
std::string format_chance(double chance);

/// The text for a chance of which `chance` is an upper bound: "at most 12 %", "less than 0.01 %".
std::string format_upper_chance(double chance);

}  // namespace dstune
