// Attention by cuDNN, where it was built in.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "core/device/operations/attention.hpp"

namespace dstune::cuda {

/// Queue `op` on `stream`, if cuDNN can do it.
/// @returns false if it cannot: nothing was queued
/// @throws CudaError, DeviceLostError
bool cudnn_attention(const Attention& op, cudaStream_t stream);
bool cudnn_attention_backward(const AttentionBackward& op, cudaStream_t stream);

/// fp32 elements that both take at most; 0 if cuDNN cannot do it.
std::int64_t cudnn_attention_workspace(const AttentionShape& shape);

}  // namespace dstune::cuda
