// Where a rank stands among the ranks of its host.
#pragma once

#include "core/device/backend.hpp"
#include "mpi/base/communicator.hpp"

namespace dstune {

/// The placement of the calling rank; a host is what MPI takes for one: ranks that can share
/// memory. Collective over `world`, whose rank 0 is the tuner.
/// @throws MpiError
Placement find_placement(const Communicator& world);

}  // namespace dstune
