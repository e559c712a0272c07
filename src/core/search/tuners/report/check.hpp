// Whether a configuration would run, found out in a second and without mpirun.
#pragma once

#include <optional>
#include <string>

#include "core/config/command_line/command_line.hpp"
#include "core/device/backend.hpp"

namespace dstune {

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
