// What a run's machine can do, measured once.
#pragma once

#include "core/config/tuning_config.hpp"
#include "core/device/machine_rates.hpp"
#include "core/experiment/experiment.hpp"
#include "core/search/schedule/scheduler.hpp"

namespace dstune {

/// The experiment that measures the machine for groups of `group_size` ranks.
Experiment machine_experiment(const TuningConfig& config, int group_size);

/// Runs it, or finds it in the journal. estimated_rates() if it failed or the run was stopped.
MachineRates measured_rates(const TuningConfig& config, int group_size, Scheduler& scheduler);

}  // namespace dstune
