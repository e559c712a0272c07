// --explain NAME: the account of one experiment, in options.format.
#pragma once

#include <string>

#include "core/config/command_line/command_line.hpp"
#include "core/device/backend.hpp"

namespace dstune {

/// The account of an experiment in results_dir's journal, with the differences from the best.
/// @throws ConfigError  if there is no such experiment, or no results
std::string explain_recorded(const CommandLine& options);

/// The account of an experiment of a plan, computed without running. @throws ConfigError  if there
/// is no such experiment
std::string explain_planned(const CommandLine& options, const LocalBackends& backends);

}  // namespace dstune
