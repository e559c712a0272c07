// Starting kernels.
#pragma once

#include <cassert>
#include <cstdint>
#include <limits>
#include <utility>

#include <cuda_runtime.h>

#include "kernels/cuda/base/check.hpp"

namespace dstune::cuda {

/// The shape of a launch: a row of blocks.
struct Grid {
  std::int64_t blocks = 0;       ///< 0: nothing is launched
  int threads = 0;               ///< of a block: a multiple of 32
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block
};

/// Blocks of `threads` that cover `count` elements, `per_thread` by each thread.
inline Grid cover(std::int64_t count, int threads, int per_thread = 1) {
  const std::int64_t per_block = std::int64_t{threads} * per_thread;
  return {(count + per_block - 1) / per_block, threads};
}

/// Queues kernel(arguments...) on `stream`. No <<<>>>, so that a C++ compiler can read it too.
/// @throws CudaError, DeviceLostError
template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, const Grid& grid, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  assert(grid.blocks <= std::numeric_limits<int>::max());
  if (grid.blocks == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks));
  config.blockDim = dim3(static_cast<unsigned>(grid.threads));
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  DSTUNE_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

}  // namespace dstune::cuda
