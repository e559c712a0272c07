// Attention of 16-bit types with scores and probabilities in registers.
#pragma once

#include <cuda_runtime_api.h>

#include "core/device/operations/attention.hpp"

namespace dstune::cuda {

/// Whether the current GPU, of compute capability 7.5 or more, can do it in `dtype`.
/// @pre  is_tiled()
/// @throws CudaError, DeviceLostError
bool is_tensor_attention(DType dtype);

/// Queue `op` on `stream`. @throws CudaError, DeviceLostError
/// @pre  is_tensor_attention()
void tensor_attention(const Attention& op, cudaStream_t stream);
/// @pre  multiply_by_gradients(op)
void tensor_attention_backward(const AttentionBackward& op, cudaStream_t stream);

}  // namespace dstune::cuda
