#include "core/search/predict/chances.hpp"

#include <cmath>
#include <numbers>

#include "core/base/text.hpp"

namespace dstune {

double log_speed(Metric metric, std::int64_t samples, Seconds step_time) {
  const double work = metric == Metric::latency ? 1 : static_cast<double>(samples);
  return std::log(work / step_time);
}

double normal_share_below(double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; }

double Guess::chance_above(double threshold) const {
  if (sd <= 0) return mean > threshold ? 1 : 0;
  return normal_share_below((mean - threshold) / sd);
}

Guess guess_of(Metric metric, std::int64_t samples, const Prediction& prediction) {
  return {log_speed(metric, samples, prediction.step_time), prediction.relative_sd};
}

namespace {

constexpr double kLeast = 1e-4;  // the least chance that is shown as a number

}  // namespace

std::string format_chance(double chance) {
  if (chance < kLeast) return "less than 0.01 %";
  const double percent = chance * 100;
  return concat(fixed(percent, percent < 0.1 ? 2 : percent < 10 ? 1 : 0), " %");
}

std::string format_upper_chance(double chance) {
  return concat(chance < kLeast ? "" : "at most ", format_chance(chance));
}

}  // namespace dstune
