#include <cuda_runtime_api.h>

#include "kernels/cuda/attention/plain.hpp"
#include "kernels/cuda/attention/tensor.hpp"
#include "kernels/cuda/base/check.hpp"

namespace dstune::cuda {

namespace {

/// Of the current GPU, 75 for 7.5.
int compute_capability() {
  int gpu = 0;
  int major = 0;
  int minor = 0;
  DSTUNE_CUDA_CHECK(cudaGetDevice(&gpu));
  DSTUNE_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu));
  DSTUNE_CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu));
  return major * 10 + minor;
}

}  // namespace

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

}  // namespace dstune::cuda
