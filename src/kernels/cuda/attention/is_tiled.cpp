#include <cuda_runtime_api.h>

#include "kernels/cuda/attention/plain.hpp"
#include "kernels/cuda/base/check.hpp"

namespace dstune::cuda {

bool is_tiled(const AttentionShape& shape, DType dtype) {
  constexpr std::int64_t kMostColumns = 128;
  constexpr int kFirstWithBf16 = 8;
  if (shape.head_size > kMostColumns) return false;
  if (dtype != DType::bf16) return true;
  int gpu = 0;
  int major = 0;
  DSTUNE_CUDA_CHECK(cudaGetDevice(&gpu));
  DSTUNE_CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, gpu));
  return major >= kFirstWithBf16;
}

}  // namespace dstune::cuda
