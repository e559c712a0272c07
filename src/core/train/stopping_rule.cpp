#include "core/train/stopping_rule.hpp"

#include <numeric>

#include "core/base/statistics.hpp"

namespace dstune {
namespace {

constexpr double kQuietPercent = 5;
constexpr int kLongest = 3;

}  // namespace

bool StoppingRule::is_enough(const std::vector<double>& times) const {
  const int steps = static_cast<int>(times.size());
  if (steps == 0 || steps < min_steps_) return false;
  if (steps >= kLongest * min_steps_) return true;
  const Seconds spent = std::accumulate(times.begin(), times.end(), 0.0);
  return spent >= time_limit_ || summarize(times).noise_percent <= kQuietPercent;
}

}  // namespace dstune
