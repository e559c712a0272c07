// What cuBLASLt's opaque descriptors hold here.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/support/cuda_on_host/include/cublasLt.h"

namespace cuda_on_host {

struct Layout {
  cudaDataType type = CUDA_R_32F;
  cublasLtOrder_t order = CUBLASLT_ORDER_COL;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t ld = 0;
  std::int32_t batch = 1;
  std::int64_t batch_stride = 0;
};

struct Product {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  cublasOperation_t op_a = CUBLAS_OP_N;
  cublasOperation_t op_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  cublasLtPointerMode_t pointers = CUBLASLT_POINTER_MODE_HOST;
  const void* bias = nullptr;
};

template <class Content, class Opaque>
Content read(const Opaque* opaque) {
  static_assert(std::is_trivially_copyable_v<Content> && sizeof(Content) <= sizeof(Opaque));
  Content content;
  std::memcpy(static_cast<void*>(&content), opaque, sizeof content);
  return content;
}

template <class Content, class Opaque>
void write(Opaque* opaque, const Content& content) {
  static_assert(std::is_trivially_copyable_v<Content> && sizeof(Content) <= sizeof(Opaque));
  std::memset(opaque, 0, sizeof *opaque);
  std::memcpy(opaque, &content, sizeof content);
}

/// Whether the operation is one that this double computes, and its shapes agree.
cublasStatus_t check_product(const Product& product, const Layout& a, const Layout& b,
                             const Layout& c, const Layout& d);

}  // namespace cuda_on_host
