#include "core/experiment/outcome/varying_steps.hpp"

#include <string_view>
#include <utility>

#include "core/base/json.hpp"
#include "core/base/statistics.hpp"

namespace dstune {

namespace {

using Member = std::pair<std::string_view, double VaryingSteps::*>;

constexpr Member kMembers[] = {
    {"mean_step_time_s", &VaryingSteps::mean_step_time},
    {"p95_step_time_s", &VaryingSteps::p95_step_time},
    {"mean_real_tokens", &VaryingSteps::mean_real_tokens},
    {"mean_padded_tokens", &VaryingSteps::mean_padded_tokens},
    {"padded_tokens_per_s", &VaryingSteps::padded_tokens_per_s},
    {"p95_tokens_per_s", &VaryingSteps::p95_tokens_per_s},
};

}  // namespace

VaryingSteps varying_steps(const std::vector<StepWork>& steps) {
  constexpr double kMostSteps = 0.95;
  std::vector<double> times;
  std::vector<double> slownesses;  // seconds per token, so that the slow end is the 95th percentile
  StepWork sum;
  for (const StepWork& step : steps) {
    times.push_back(step.time);
    slownesses.push_back(step.time / step.real_tokens);
    sum.time += step.time;
    sum.real_tokens += step.real_tokens;
    sum.padded_tokens += step.padded_tokens;
  }
  const auto count = static_cast<double>(steps.size());
  VaryingSteps result{.mean_step_time = sum.time / count,
                      .p95_step_time = percentile(std::move(times), kMostSteps),
                      .mean_real_tokens = sum.real_tokens / count,
                      .mean_padded_tokens = sum.padded_tokens / count};
  if (sum.time <= 0) return result;  // the clock stood still
  result.padded_tokens_per_s = sum.padded_tokens / sum.time;
  const double slowness = percentile(std::move(slownesses), kMostSteps);
  if (slowness > 0) result.p95_tokens_per_s = 1 / slowness;
  return result;
}

json::object to_json(const VaryingSteps& steps) {
  json::object object;
  for (const auto& [key, member] : kMembers) object[key] = steps.*member;
  return object;
}

VaryingSteps varying_steps_from_json(const json::object& object) {
  VaryingSteps steps;
  for (const auto& [key, member] : kMembers) steps.*member = object.at(key).to_number<double>();
  return steps;
}

}  // namespace dstune
