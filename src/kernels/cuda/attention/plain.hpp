// Attention for heads of any size, capped scores, and types that tensor cores do not know, slowly.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "core/device/operations/attention.hpp"

namespace dstune::cuda {

/// Whether tiles have room for a head, of at most 128 columns, scores are not capped, and the
/// tensor cores of the current GPU know the type: bf16 since compute capability 8.0.
/// @throws CudaError, DeviceLostError
bool is_tiled(const AttentionShape& shape, DType dtype);

/// Queue `op` on `stream`. @throws CudaError, DeviceLostError
void plain_attention(const Attention& op, cudaStream_t stream);
/// @pre  multiply_by_gradients(op)
void plain_attention_backward(const AttentionBackward& op, cudaStream_t stream);

/// workspace = d_out . out of every query, (batch * heads * sequence).
void multiply_by_gradients(const AttentionBackward& op, cudaStream_t stream);

}  // namespace dstune::cuda
