// The state of a library's random generator, which it reads from device memory.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace dstune::cuda {

/// Queues philox[0] = seed, philox[1] = 0, its offset: as PyTorch does before a call of cuDNN's
/// attention with dropout (unpack_cudnn, ATen/cuda/PhiloxUtils.cuh).
/// @throws CudaError, DeviceLostError
void queue_philox(std::uint64_t seed, std::int64_t* philox, cudaStream_t stream);

}  // namespace dstune::cuda
