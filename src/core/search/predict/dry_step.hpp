// How long a step takes by physics alone, and on what.
#pragma once

#include <optional>

#include "core/device/machine_rates.hpp"
#include "core/experiment/experiment.hpp"
#include "core/search/predict/step_part.hpp"

namespace dstune {

class Device;

/// The steady optimizer step of `experiment` on rank 0 of its group: the step's own code on a
/// RatedDevice. Local, milliseconds: it walks every micro-step but those that repeat themselves.
/// @param imitated  the device whose scratch is counted; none: a GPU with fused kernels
/// @param factors   see RatedDevice
/// @returns none  if the step is not modelled (Skipped)
std::optional<StepTime> dry_step_time(const Experiment& experiment, const MachineRates& rates,
                                      const Device* imitated = nullptr,
                                      const PartFactors& factors = kAsRated);

}  // namespace dstune
