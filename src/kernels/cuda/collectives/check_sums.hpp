// Whether a new communicator gives right results.
#pragma once

#include <string>

#include "kernels/cuda/collectives/nccl_communicator.hpp"
#include "kernels/cuda/device/gpu.hpp"

namespace dstune::cuda {

/// Runs each kind of collective on known values, 1 MiB at most, on the communication stream:
/// some versions of NCCL corrupt sums on some networks. It also makes NCCL connect and take its
/// memory now. Collective over the communicator; uses the stream's scratch and the staging memory.
/// @param who  "rank 3, of the communicator of ranks 1, 3": in the message
/// @throws WrongSumsError
void check_sums(const NcclCommunicator& communicator, Gpu& gpu, const std::string& who,
                const Waiting& waiting);

}  // namespace dstune::cuda
