// How fast a machine may be, where nobody has measured it.
#pragma once

#include "core/device/machine_rates.hpp"
#include "core/experiment/experiment.hpp"

namespace dstune {

/// Orders of magnitude for the backend and its threads.
MachineRates estimated_rates(const RunSettings& settings);

}  // namespace dstune
