// Attention by kernels of our own.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "core/device/operations/attention.hpp"
#include "kernels/cuda/attention/stand_in.hpp"

namespace dstune::cuda {

/// Tiled, with an online softmax; 16-bit types on tensor cores, their scores in registers from
/// compute capability 7.5 on (Dao 2023). Heads of more than 128 columns, capped scores, and bf16 on
/// GPUs before 8.0, take a plain path. Which probabilities are dropped is the CPU backend's choice,
/// bit for bit (ScoreGroups). The same call gives the same bits on the same kind of GPU.
///
/// Queue `op` on `stream`. @throws CudaError, DeviceLostError
void own_attention(const Attention& op, cudaStream_t stream);
void own_attention_backward(const AttentionBackward& op, cudaStream_t stream);

/// fp32 elements that both take at most.
std::int64_t own_attention_workspace(const AttentionShape& shape);

/// Whether tiles have room for a head, of at most 128 columns, scores are not capped, and the
/// tensor cores of the current GPU know the type: bf16 since compute capability 8.0.
/// @throws CudaError, DeviceLostError
bool is_tiled(const AttentionShape& shape, DType dtype);

/// Of the current GPU: 90 for 9.0. @throws CudaError, DeviceLostError
int compute_capability();

/// What own_attention() takes. @throws CudaError, DeviceLostError
AttentionKernel own_kernel(const AttentionShape& shape, DType dtype);

/// For heads of any size, capped scores, and types that tensor cores do not know, slowly.
/// Queue `op` on `stream`. @throws CudaError, DeviceLostError
void plain_attention(const Attention& op, cudaStream_t stream);
/// @pre  multiply_by_gradients(op)
void plain_attention_backward(const AttentionBackward& op, cudaStream_t stream);

/// workspace = d_out . out of every query, (batch * heads * sequence).
void multiply_by_gradients(const AttentionBackward& op, cudaStream_t stream);

/// Whether the current GPU, of compute capability 7.5 or more, can do it in `dtype`.
/// @pre  is_tiled()
/// @throws CudaError, DeviceLostError
bool is_tensor_attention(DType dtype);

/// For 16-bit types, with scores and probabilities in registers.
/// Queue `op` on `stream`. @throws CudaError, DeviceLostError
/// @pre  is_tensor_attention()
void tensor_attention(const Attention& op, cudaStream_t stream);
/// @pre  multiply_by_gradients(op)
void tensor_attention_backward(const AttentionBackward& op, cudaStream_t stream);

}  // namespace dstune::cuda
