// A worker put together: a backend, and the loop that obeys rank 0.
#pragma once

#include "core/device/backend.hpp"
#include "mpi/base/communicator.hpp"
#include "mpi/base/environment.hpp"
#include "mpi/lifeline/sentinel.hpp"

namespace dstune {

/// Runs a rank other than 0, from start-up to the end of the run. The sentinel ends the process
/// when rank 0 or mpirun is gone, also while it is inside a kernel.
/// @returns the exit code of the process; does not return if the rank must leave without
/// MPI_Finalize
int run_worker_rank(Environment& environment, const Communicator& world, const Placement& placement,
                    Sentinel& sentinel);

}  // namespace dstune
