// --explain NAME: one experiment of a finished run, or of a plan.
#pragma once

#include "core/config/command_line/command_line.hpp"

namespace dstune {

/// Prints the account of the experiment options.explain: with --plan computed without running, else
/// from results_dir's journal, with what differs from the best. Needs no mpirun.
/// @throws ConfigError  if there is no such experiment, or no results
void print_explanation(const CommandLine& options);

}  // namespace dstune
