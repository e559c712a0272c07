// The place of a rank among the ranks of its host.
#pragma once

#include "core/device/backend.hpp"
#include "mpi/base/communicator.hpp"

namespace dstune {

/// The placement of the calling rank. Ranks that can share memory count as one host, as MPI has it.
/// Collective over `world`, whose rank 0 is the tuner.
/// @throws MpiError
Placement find_placement(const Communicator& world);

}  // namespace dstune
