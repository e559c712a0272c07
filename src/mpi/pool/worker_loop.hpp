// The loop of every rank but 0, from start-up to the end of the run.
#pragma once

#include <functional>

#include "core/experiment/experiment.hpp"
#include "core/experiment/outcome/outcome.hpp"
#include "mpi/base/communicator.hpp"
#include "mpi/collectives/mpi_group.hpp"

namespace dstune {

/// Runs one experiment on this rank; collective over the group. Group rank 0's outcome counts. An
/// exception is reported and ends the experiment on the other ranks; ExperimentAborted must pass.
/// After a DeviceLostError rank 0 sends this rank nothing more; after a WrongSumsError the
/// run ends.
using ExperimentRunner = std::function<Outcome(const Experiment&, MpiGroup&)>;

enum class LoopResult {
  finished,  ///< rank 0 ended the run and every rank is alive: MPI_Finalize
  orphaned,  ///< rank 0 is gone: _exit, by 0 if mpirun survives deaths, without any MPI call
  cut_off,   ///< rank 0 was silent for longer than the lease: _exit(1), without any MPI call
};

/// Obeys rank 0 (MpiWorkerPool, or broadcast_stop) until the run ends.
/// @param world  the same communicator as rank 0's
/// @throws Error  if MPI fails
LoopResult run_worker_loop(const Communicator& world, const WorkerOptions& options,
                           const ExperimentRunner& runner);

}  // namespace dstune
