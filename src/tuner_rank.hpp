// What rank 0 is made of: input, worker pool, journal, search, results.
#pragma once

#include "core/base/files/exit_code.hpp"
#include "core/config/command_line/command_line.hpp"
#include "mpi/base/communicator.hpp"

namespace dstune {

struct TunerRankResult {
  int exit_code = exit_internal_error;
  bool all_alive = true;  ///< every rank is: MPI_Finalize. Else rank 0 must leave by _exit
};

/// Rank 0, from reading the input to the last file. Says what is wrong on stderr; the workers have
/// been told to leave when it returns.
TunerRankResult run_tuner_rank(const CommandLine& options, const Communicator& world);

}  // namespace dstune
