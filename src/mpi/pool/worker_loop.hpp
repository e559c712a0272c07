// The loop of every rank but 0, from start-up to the end of the run.
#pragma once

#include <functional>

#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"
#include "mpi/base/communicator.hpp"
#include "mpi/collectives/mpi_group.hpp"

namespace dstune {

/// Runs one experiment on this rank; collective over the group. The outcome of the group's rank 0
/// counts. An exception is reported and ends the experiment on the other ranks; the runner must let
/// ExperimentAborted pass. After a DeviceLostError rank 0 sends this rank nothing more; after a
/// WrongSumsError the run ends.
using ExperimentRunner = std::function<Outcome(const Experiment&, MpiGroup&)>;

enum class LoopResult {
  finished,  ///< rank 0 ended the run and every rank is alive: call MPI_Finalize
  /// Rank 0 is gone: leave by _exit, with 0 if mpirun survives deaths, without any MPI call.
  orphaned,
  /// Rank 0 was silent for longer than the lease: leave by _exit(1), without any MPI call.
  cut_off,
};

/// Obeys rank 0 (MpiWorkerPool, or broadcast_stop) until the run ends.
/// @param world  a communicator of the same ranks as rank 0's
/// @throws Error  if MPI fails
LoopResult run_worker_loop(const Communicator& world, const WorkerOptions& options,
                           const ExperimentRunner& runner);

}  // namespace dstune
