// --plan: what would be explored, without mpirun.
#pragma once

#include "core/config/command_line/command_line.hpp"

namespace dstune {

/// Prints it in options.format. @throws ConfigError
/// @returns the exit code: 0, or 3 if nothing fits in memory
int print_plan(const CommandLine& options);

}  // namespace dstune
