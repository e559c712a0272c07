// The files that rank 0 leaves for scripts/supervise.sh, which outlives MPI: where the results are,
// and what --run starts when the tuning is done.
#pragma once

#include <string>
#include <vector>

namespace dstune {

/// Names the file of leave_results_folder in the environment: scripts/supervise.sh sets it.
constexpr const char* kResultsFileVariable = "DSTUNE_RESULTS_FILE";

/// Names the file of leave_training_command in the environment: scripts/supervise.sh sets it and
/// starts what it finds there.
constexpr const char* kCommandFileVariable = "DSTUNE_COMMAND_FILE";

/// The remark on --run where nobody reads that file: under mpirun alone.
constexpr const char* kNobodyStarts =
    "--run starts nothing under mpirun alone, since MPI has not ended when the optimum is known: "
    "scripts/tune.sh --run does; or start the line of cmd_optimal.txt";

/// Whether somebody starts what leave_training_command leaves.
bool is_training_started();

/// Writes the absolute path of `results_dir`, whose journal is this run's from now on, to the file
/// that DSTUNE_RESULTS_FILE names, if there is one. @throws Error
void leave_results_folder(const std::string& results_dir);

/// Writes the words of a command to the file that DSTUNE_COMMAND_FILE names, if there is one: a
/// zero byte after each, so that no word needs quotes. @throws Error
void leave_training_command(const std::vector<std::string>& words);

}  // namespace dstune
