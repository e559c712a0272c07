// Attention by cuDNN's fused kernels, where cuDNN and its frontend were built in.
#pragma once

#include <cstdint>
#include <string_view>

#include <cuda_runtime_api.h>

#include "core/device/operations/attention.hpp"

namespace dstune::cuda {

/// Queue `op` on `stream`, if cuDNN can do it: 16-bit types, heads of a multiple of 8 columns, as
/// many as its version has kernels for on this GPU, windows only where it is causal, and scores
/// without a cap. Which probabilities are dropped is its own choice, by the shape's seed: others
/// than the CPU backend's, as many, and the same ones in both passes.
/// @param philox  device memory of two numbers, which are overwritten if something is dropped: the
///                state of cuDNN's random generator
/// @returns false if it cannot: nothing was queued
/// @throws CudaError, DeviceLostError, OutOfMemoryError; CudaError also if cuDNN has dropped
///         probabilities in the forward and cannot do this backward, since nobody else knows which
bool fused_attention(const Attention& op, std::int64_t* philox, cudaStream_t stream);
bool fused_attention_backward(const AttentionBackward& op, std::int64_t* philox,
                              cudaStream_t stream);

/// Whether cuDNN can do it, as far as that is known without asking it: scores have no cap, and
/// windows are causal, since it has bounds on both sides of the diagonal only where it is cut
/// there.
inline bool is_cudnns(const AttentionShape& shape, DType dtype) {
  constexpr std::int64_t kMostHeadSize = 256;
  constexpr std::int64_t kHeadSizes = 8;  // a multiple of it
  return dtype != DType::fp32 && shape.softcap == 0 && (shape.causal || shape.window == 0) &&
         shape.head_size <= kMostHeadSize && shape.head_size % kHeadSizes == 0 &&
         shape.batch * shape.sequence > 0;
}

/// Why nothing is cuDNN's in this build; empty where it may be.
std::string_view why_never_fused();

/// fp32 elements that both take at most; 0 if cuDNN cannot do it. Builds their plans, which takes
/// the host some 0.1 s, once per shape. That cuDNN cannot do it is remembered, and why goes to the
/// log once; any other failure is not.
/// @throws CudaError, DeviceLostError, OutOfMemoryError
std::int64_t fused_attention_workspace(const AttentionShape& shape);

}  // namespace dstune::cuda
