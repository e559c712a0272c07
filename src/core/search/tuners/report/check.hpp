// Whether a configuration would run and what its search has before it, in a fraction of a second
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

/// What a search has before it, known without its pool.
struct SearchOutline {
  std::vector<int> stages;           ///< in which something fits
  std::uint64_t configurations = 0;  ///< generated in these; some may be the same, or not fit
  std::uint64_t experiments = 0;     ///< of these at most, repetitions aside

  bool operator==(const SearchOutline&) const = default;
};

/// @param stages  plan_stages()
SearchOutline outline_search(const TuningConfig& config, int group_size,
                             const std::vector<StagePlan>& stages,
                             const DryRunner& dry_run = make_dry_runner());

/// "would run: ...", with how many stages and experiments and what memory there is on this machine;
/// none if nothing fits in memory. Warnings and notes go to the log.
///
/// Without --world-size or --hostfile it is checked for dstune.ranks_per_experiment workers, else
/// for two.
///
/// @throws ConfigError  with every fault of the file; or, if that has none, every fault of the plan
///                      and of the results' folders
std::optional<std::string> check_run(const CommandLine& options, const LocalBackends& backends);

}  // namespace dstune
