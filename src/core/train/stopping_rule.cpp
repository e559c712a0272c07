#include "core/train/stopping_rule.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/statistics.hpp"

namespace dstune {
namespace {

constexpr double kQuietPercent = 5;
constexpr int kLongest = 3;

constexpr double kSurePercent = 3;
constexpr int kFewestBatches = 8;  // fewer say little of their own spread
constexpr int kLongestOfBatches = 20;

}  // namespace

bool StoppingRule::may_give_up_after(int steps) const {
  return steps == kRacedSteps && give_up_above_ > 0 && differ_ == StepsDiffer::by_noise;
}

bool StoppingRule::needs_more_than(int steps) const {
  return steps == 0 || (steps < min_steps_ && !may_give_up_after(steps));
}

bool StoppingRule::is_enough(const std::vector<double>& times, Seconds spent) const {
  const int steps = static_cast<int>(times.size());
  if (needs_more_than(steps)) return false;
  if (may_give_up_after(steps) && *std::ranges::min_element(times) > give_up_above_) return true;
  if (steps < min_steps_) return false;
  const bool by_nature = differ_ == StepsDiffer::by_nature;
  if (spent >= time_limit_) return true;
  if (spent < least_time_) return false;
  if (by_nature && steps < kFewestBatches) return false;
  if (steps >= (by_nature ? kLongestOfBatches : kLongest) * min_steps_) return true;
  const double noise = summarize(times).noise_percent;
  return by_nature ? noise / std::sqrt(steps) <= kSurePercent : noise <= kQuietPercent;
}

}  // namespace dstune
