// --status DIR: whether a run is running, dead or finished.
#pragma once

#include "core/config/command_line/command_line.hpp"

namespace dstune {

/// Prints one line ("running: ...", "dead: ...", "finished: ...") or, with --format json, the run's
/// status.json with "life" and "heartbeat_age_s" added. Changes nothing.
/// @throws ConfigError  if there is no status.json of a run
void print_status(const CommandLine& options);

}  // namespace dstune
