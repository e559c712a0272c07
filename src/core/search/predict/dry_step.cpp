#include "core/search/predict/dry_step.hpp"

#include "core/experiment/step_config.hpp"
#include "core/experiment/step_refused.hpp"
#include "core/search/predict/rated_device.hpp"
#include "core/train/families/families.hpp"
#include "core/train/run_experiment.hpp"
#include "core/train/training_step.hpp"

namespace dstune {
namespace {

// Walks two steps, because in stage 3 the first step records the trace that the second follows.
StepTime walk(const Experiment& experiment, const StepConfig& config, const MachineRates& rates,
              const PartFactors& factors, LastModel& model) {
  RatedDevice device(rates, factors);
  RatedCollectives collectives(device, 0, experiment.ranks);
  TrainingStep step(experiment.settings, config, device, collectives,
                    model.parameters_of(experiment.settings.model));
  step.run();
  device.synchronize();
  const StepTime before = device.time();
  const StepReport report = step.run();
  device.synchronize();
  StepTime time = device.time();
  for (std::size_t part = 0; part < kStepParts; ++part) time.parts[part] -= before.parts[part];
  // The numbers of the report are read after the step, so that their time does not count.
  time.at(StepPart::launches) -= time.total() - report.total;
  return time;
}

// Micro-steps from the third to the last but one are alike, so that only a few are walked.
StepTime walk_some(const Experiment& experiment, StepConfig config, const MachineRates& rates,
                   const PartFactors& factors) {
  constexpr std::int64_t kWalked = 4;
  const std::int64_t more = config.accumulation_steps - kWalked;
  LastModel model;  // Both walks train the same one.
  if (more <= 1) return walk(experiment, config, rates, factors, model);
  config.accumulation_steps = kWalked;
  StepTime time = walk(experiment, config, rates, factors, model);
  config.accumulation_steps = kWalked + 1;
  const StepTime longer = walk(experiment, config, rates, factors, model);
  for (std::size_t part = 0; part < kStepParts; ++part) {
    time.parts[part] += static_cast<double>(more) * (longer.parts[part] - time.parts[part]);
  }
  return time;
}

}  // namespace

std::optional<StepTime> dry_step_time(const Experiment& experiment, const RunRates& rates,
                                      const PartFactors& factors) {
  if (!is_modelled(experiment)) return std::nullopt;
  const StepConfig config = make_step_config(experiment);
  try {
    return walk_some(experiment, config, rates.of(config.dtype), factors);
  } catch (const StepRefused&) {
    return std::nullopt;
  }
}

}  // namespace dstune
