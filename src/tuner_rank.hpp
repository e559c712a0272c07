// What rank 0 is made of: input, worker pool, journal, search, results.
#pragma once

#include "core/config/command_line.hpp"
#include "mpi/communicator.hpp"

namespace dstune {

/// Exit codes of the program.
enum ExitCode : int {
  exit_found = 0,
  exit_internal_error = 1,
  exit_wrong_input = 2,
  exit_nothing_fits = 3
};

struct TunerRankResult {
  int exit_code = exit_internal_error;
  bool all_alive = true;  ///< every rank is: MPI_Finalize. Else rank 0 must leave by _exit
};

/// Rank 0, from reading the input to the last file. Says what is wrong on stderr; the workers have
/// been told to leave when it returns.
TunerRankResult run_tuner_rank(const CommandLine& options, const Communicator& world);

}  // namespace dstune
