// Attention for heads of any size, slowly.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "core/device/operations/attention.hpp"

namespace dstune::cuda {

/// Columns of a head that tiles have room for.
constexpr std::int64_t kMostTiledSize = 128;

/// Queue `op` on `stream`. @throws CudaError, DeviceLostError
void plain_attention(const Attention& op, cudaStream_t stream);
/// @pre  multiply_by_gradients(op)
void plain_attention_backward(const AttentionBackward& op, cudaStream_t stream);

/// workspace = d_out . out of every query, (batch * heads * sequence).
void multiply_by_gradients(const AttentionBackward& op, cudaStream_t stream);

}  // namespace dstune::cuda
