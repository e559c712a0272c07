// --check: whether a configuration would run, found out in a second and without mpirun.
#pragma once

#include "core/config/command_line/command_line.hpp"
#include "core/config/tuning_config.hpp"

namespace dstune {

/// Says on stdout that the configuration would run, with how many stages and experiments.
///
/// Without --world-size or --hostfile it is checked for dstune.ranks_per_experiment workers, else
/// for two.
///
/// @returns the exit code of such a run: 0, or 3 if nothing fits in memory
/// @throws ConfigError  with every fault of the file; or, if that has none, every fault of the plan
///                      and of the results' folders
int print_check(const CommandLine& options);

/// @throws ConfigError  if results_dir or exps_dir could not be written to
void check_folders(const TuningConfig& config, const CommandLine& options);

}  // namespace dstune
