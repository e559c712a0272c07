// Grouped calls of NCCL: what a host thread called since ncclGroupStart().
#pragma once

#include <functional>

#include "tests/support/cuda_on_host/nccl/clique.hpp"

namespace cuda_on_host {

/// Checks the communicator and adds the call to the open group, or makes it a group of its own.
ncclResult_t add_collective(const char* function, ncclComm_t comm, cudaStream_t stream,
                            CollectiveCall call);
ncclResult_t add_transfer(const char* function, ncclComm_t comm, cudaStream_t stream,
                          const Transfer& transfer);

/// Remembers a call that failed, so that the group fails.
ncclResult_t note_result(ncclResult_t result);

/// A communicator that is being made in the group: its end is ncclInProgress.
void note_creation();
bool group_is_open();

/// Enqueues what a non-blocking communicator's last group left, as NCCL's thread does.
void launch_pending(Rank& rank);

}  // namespace cuda_on_host
