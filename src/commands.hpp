// The actions that need no mpirun: --help, --version, --list-backends, --list-models, --check,
// --plan, --explain, --status and --nvme-sweep.
#pragma once

#include <string_view>

#include "core/config/command_line/command_line.hpp"

namespace dstune {

/// The commit of the checkout when the program was built: "458b56cb0123", with "-dirty" behind it
/// where tracked files had changes; "unknown" without git or a checkout. cmake/SourceCommit.cmake
/// writes its source.
std::string_view source_commit();

/// Prints what options.action asks for, in options.format:
///
/// --list-models: the presets. --plan: the experiments that would be explored. --check: whether the
/// configuration would run.
/// --explain: the account of an experiment, which is computed without running with --plan, and else
/// comes from results_dir's journal with the differences from the best. --status: one line
/// ("running: ...", "dead: ...", "finished: ..."), or the run's status.json with "life" and
/// "heartbeat_age_s" added; it changes nothing. --nvme-sweep: what the drive of a directory can do,
/// to which it writes.
///
/// @returns the exit code: 0, 3 if a plan's or a check's configuration does not fit in memory, or 5
///          if a drive failed
/// @throws ConfigError  with every fault of the input; or if there is no such experiment or no run
int run_command(const CommandLine& options);

}  // namespace dstune
