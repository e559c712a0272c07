// Rank 0 put together: input, worker pool, journal, search, results.
#pragma once

#include "core/base/files/exit_code.hpp"
#include "core/config/command_line/command_line.hpp"
#include "mpi/base/communicator.hpp"

namespace dstune {

struct TunerRankResult {
  int exit_code = exit_internal_error;
  bool all_alive = true;  ///< true: rank 0 calls MPI_Finalize; false: it must leave by _exit
};

/// Runs rank 0, from reading the input to the last file. It reports errors on stderr; when it
/// returns, the workers have been told to leave.
TunerRankResult run_tuner_rank(const CommandLine& options, const Communicator& world);

}  // namespace dstune
