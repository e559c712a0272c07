// Attention by kernels of our own.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "core/device/operations/attention.hpp"

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

}  // namespace dstune::cuda
