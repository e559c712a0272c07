#include "kernels/cuda/attention/tensor_launch.hpp"

#include <cuda_runtime_api.h>

#include "kernels/cuda/attention/own.hpp"
#include "kernels/cuda/base/check.hpp"

namespace dstune::cuda {

namespace {

constexpr std::size_t kSharedOfEveryBlock = std::size_t{48} << 10U;

int attribute(cudaDeviceAttr name) {
  int gpu = 0;
  int value = 0;
  DSTUNE_CUDA_CHECK(cudaGetDevice(&gpu));
  DSTUNE_CUDA_CHECK(cudaDeviceGetAttribute(&value, name, gpu));
  return value;
}

std::int64_t blocks(const WarpChoice& choice, int warps) {
  const std::int64_t rows = choice.rows * warps;
  return (choice.sequence + rows - 1) / rows * choice.heads;
}

}  // namespace

int compute_capability() {
  return attribute(cudaDevAttrComputeCapabilityMajor) * 10 +
         attribute(cudaDevAttrComputeCapabilityMinor);
}

int warps_of_block(const WarpChoice& choice, std::size_t (*bytes)(int)) {
  const auto shared = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  const std::int64_t enough = std::int64_t{2} * attribute(cudaDevAttrMultiProcessorCount);
  int warps = choice.most;
  while (warps > 1 && (bytes(warps) > shared || choice.rows * (warps / 2) >= choice.sequence ||
                       blocks(choice, warps) < enough)) {
    warps /= 2;
  }
  return warps;
}

void allow_shared_bytes(const void* kernel, std::size_t bytes) {
  if (bytes <= kSharedOfEveryBlock) return;
  DSTUNE_CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(bytes)));
}

bool is_tiled(const AttentionShape& shape, DType dtype) {
  constexpr std::int64_t kMostColumns = 128;
  constexpr int kFirstWithBf16 = 80;
  if (shape.head_size > kMostColumns || shape.softcap != 0) return false;
  return dtype != DType::bf16 || compute_capability() >= kFirstWithBf16;
}

bool is_tensor_attention(DType dtype) {
  constexpr int kFirstWithMatrixLoads = 75;
  return dtype != DType::fp32 && compute_capability() >= kFirstWithMatrixLoads;
}

AttentionKernel own_kernel(const AttentionShape& shape, DType dtype) {
  if (!is_tiled(shape, dtype)) return AttentionKernel::plain;
  return is_tensor_attention(dtype) ? AttentionKernel::tensor_tiles : AttentionKernel::tiles;
}

}  // namespace dstune::cuda
