// --check: whether a configuration would run, found out in a second and without mpirun.
#pragma once

#include "core/config/command_line/command_line.hpp"

namespace dstune {

/// Says on stdout that the configuration would run.
/// @returns the exit code of such a run: 0, or 3 if nothing fits in memory
/// @throws ConfigError  with every fault (check_run())
int print_check(const CommandLine& options);

}  // namespace dstune
