// How many warps a block of attention has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dstune::cuda {

/// The facts that decide how many warps a block has.
struct WarpChoice {
  std::int64_t sequence = 0;
  std::int64_t heads = 0;  ///< of all sequences
  std::int64_t rows = 0;   ///< of the sequence that a warp takes
  int most = 0;            ///< warps, a power of 2
};

/// No more warps than the sequence has work for, than the current GPU has shared memory for
/// (`bytes` of warps), and than leave it two blocks for each multiprocessor.
/// @throws CudaError, DeviceLostError
int warps_of_block(const WarpChoice& choice, std::size_t (*bytes)(int));

/// Lets `kernel` have that much dynamic shared memory. @throws CudaError, DeviceLostError
void allow_shared_bytes(const void* kernel, std::size_t bytes);

}  // namespace dstune::cuda
