#include "core/train/zero/reduction/gradient_scaling.hpp"

namespace dstune {

GradientScaling configured_scaling(const StepConfig& config, int ranks) {
  if (config.sum_gradients || config.prescale_gradients) return division_first(config, ranks);
  GradientScaling scaling;
  const double factor = config.gradient_predivide_factor;
  if (factor != 1) scaling.before = 1 / factor;
  if (factor != ranks) scaling.after = factor / ranks;
  return scaling;
}

GradientScaling division_first(const StepConfig& config, int ranks) {
  if (config.sum_gradients) return {};
  return {.before = 1.0 / ranks, .after = std::nullopt};
}

}  // namespace dstune
