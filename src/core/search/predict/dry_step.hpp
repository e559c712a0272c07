// The time of a step by physics alone, and the parts to which it goes.
#pragma once

#include <optional>

#include "core/experiment/experiment.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/search/predict/step_part.hpp"

namespace dstune {

/// The time of a steady optimizer step of `experiment` on rank 0 of its group, for which the step's
/// own code runs on a RatedDevice. The call is local and takes milliseconds: it walks every
/// micro-step but those that repeat others.
/// @param factors  see RatedDevice
/// @returns none if the step is not modelled (Skipped)
std::optional<StepTime> dry_step_time(const Experiment& experiment, const RunRates& rates,
                                      const PartFactors& factors = kAsRated);

}  // namespace dstune
