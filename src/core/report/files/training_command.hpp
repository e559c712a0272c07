// What --run starts when the tuning is done: left for whoever outlives MPI.
#pragma once

#include <string>

namespace dstune {

/// Names the file of leave_training_command in the environment: scripts/supervise.sh sets it and
/// starts what it finds there.
constexpr const char* kCommandFileVariable = "DSTUNE_COMMAND_FILE";

/// What --run does where nobody reads that file: under mpirun alone.
constexpr const char* kNobodyStarts =
    "--run starts nothing under mpirun alone, since MPI has not ended when the optimum is known: "
    "scripts/tune.sh --run does; or start the line of cmd_optimal.txt";

/// Whether somebody starts what leave_training_command leaves.
bool is_training_started();

/// Writes `line`, a command as a shell reads it, to that file. @throws Error
void leave_training_command(const std::string& line);

}  // namespace dstune
