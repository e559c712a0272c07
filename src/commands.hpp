// What needs no mpirun: --help, --version, --list-backends, --check, --plan, --explain and
// --status.
#pragma once

#include "core/config/command_line/command_line.hpp"

namespace dstune {

/// Prints what options.action asks for, in options.format:
///
/// --plan: what would be explored. --check: that the configuration would run. --explain: the
/// account of an experiment, with --plan computed without running, else from results_dir's journal,
/// with what differs from the best. --status: one line ("running: ...", "dead: ...", "finished:
/// ..."), or the run's status.json with "life" and "heartbeat_age_s" added; changes nothing.
///
/// @returns the exit code: 0, or 3 if a plan's or a check's configuration does not fit in memory
/// @throws ConfigError  with every fault of the input; if there is no such experiment, or no run
int run_command(const CommandLine& options);

}  // namespace dstune
