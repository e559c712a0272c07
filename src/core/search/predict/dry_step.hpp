// How long a step takes by physics alone, and on what.
#pragma once

#include <optional>

#include "core/experiment/experiment.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/search/predict/step_part.hpp"

namespace dstune {

/// The steady optimizer step of `experiment` on rank 0 of its group: the step's own code on a
/// RatedDevice. Local, milliseconds: it walks every micro-step but those that repeat themselves.
/// @param factors  see RatedDevice
/// @returns none  if the step is not modelled (Skipped)
std::optional<StepTime> dry_step_time(const Experiment& experiment, const RunRates& rates,
                                      const PartFactors& factors = kAsRated);

}  // namespace dstune
