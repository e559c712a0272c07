// What a GPU has left for training.
#pragma once

#include <vector>

#include "core/device/backend.hpp"

namespace dstune::cuda {

struct FreeMemory {
  Bytes free = 0;                       ///< with the context of this process made
  std::vector<MemoryReserve> reserves;  ///< what a backend takes of that beside buffers
};

/// Takes what a backend on GPU `index` takes, and gives it back but for the context and the kernels
/// that warm_up() loads, which stay with the process. NCCL's buffers are those that the cache of
/// communicators may hold; kernels that are loaded later and gaps between buffers are as
/// piece_size.hpp says. The gaps count where buffers will lie in one piece.
/// @param has_peers  there are other workers
/// @throws CudaError, DeviceLostError, OutOfMemoryError; Error if a library is not there
FreeMemory probe_memory(int index, bool has_peers);

}  // namespace dstune::cuda
