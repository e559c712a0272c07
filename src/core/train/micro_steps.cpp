#include "core/train/micro_steps.hpp"

namespace dstune {

// One more runs before the two where an odd number would be left out, so that both count equally
// often.
MicroStepPlan plan_micro_steps(std::int64_t accumulation_steps, MicroSteps which) {
  constexpr std::int64_t kUnlike = 2;
  const std::int64_t more = accumulation_steps - kUnlike - MicroStepPlan::kAlike - 1;
  if (which == MicroSteps::all || more < MicroStepPlan::kAlike) return {};
  const std::int64_t odd = more % MicroStepPlan::kAlike;
  return {.first_alike = kUnlike + odd, .left_out = more - odd};
}

}  // namespace dstune
