// Checks whether a configuration would run and how large its search is, in a fraction of a second
// for any space and without mpirun.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/command_line/command_line.hpp"
#include "core/config/tuning_config.hpp"
#include "core/device/backend.hpp"
#include "core/search/feasibility/stage_plan.hpp"
#include "core/search/space/pool.hpp"

namespace dstune {

/// The size of a search, as far as it is known without its pool.
struct SearchOutline {
  std::vector<int> stages;  ///< the stages in which something fits
  /// Configurations generated in these stages; some may be the same, or not fit.
  std::uint64_t configurations = 0;
  std::uint64_t experiments = 0;  ///< the most experiments that are run of these, repetitions aside

  bool operator==(const SearchOutline&) const = default;
};

/// @param stages  the result of plan_stages()
SearchOutline outline_search(const TuningConfig& config, int group_size,
                             const std::vector<StagePlan>& stages,
                             const DryRunner& dry_run = make_dry_runner());

/// "would run: ...", with how many stages and experiments and what memory there is on this machine;
/// none if nothing fits in memory. Warnings and notes go to the log.
///
/// Without --world-size or --hostfile the configuration is checked for dstune.ranks_per_experiment
/// workers if that is set, else for two.
///
/// @throws ConfigError  with every fault of the file; or, if that has none, every fault of the plan
///                      and of the results' folders
std::optional<std::string> check_run(const CommandLine& options, const LocalBackends& backends);

}  // namespace dstune
