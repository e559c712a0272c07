// The rates of a run's groups, each measured once.
#pragma once

#include <vector>

#include "core/config/tuning_config.hpp"
#include "core/experiment/experiment.hpp"
#include "core/search/predict/run_rates.hpp"
#include "core/search/schedule/scheduler.hpp"

namespace dstune {

/// The experiments that measure the machine: for each type of model in the spaces one on every
/// group, with the messages that a configuration of that type would send. The first type's measure
/// the host too, if a configuration has tensors in its memory.
/// @param groups  the number of groups that run at once; each gets a repetition of its own
std::vector<Experiment> machine_experiments(const TuningConfig& config, int group_size, int groups);

/// Runs the machine_experiments(), side by side as the search will run, or finds them in the
/// journal. @returns their rates, or estimated_rates() if all of them failed or the run was stopped
RunRates measured_rates(const TuningConfig& config, int group_size, Scheduler& scheduler);

}  // namespace dstune
