// The algorithm that cuBLASLt takes for a product.
#pragma once

#include <memory>

#include "core/base/units.hpp"
#include "kernels/cuda/gemm/product.hpp"
#include "kernels/cuda/libraries/cublas_lt.hpp"

namespace dstune::cuda {

/// @throws DeviceLostError   if CUDA has lost the device
/// @throws OutOfMemoryError  if cuBLASLt found no memory
/// @throws CudaError         else, unless all is well
void check_cublas(cublasStatus_t status, const char* call);

/// Descriptors and algorithm of one product, used for each product like it.
class ProductPlan {
 public:
  /// Asks cuBLASLt's heuristics, which costs the host some 10 us.
  /// @param op         the first of these products
  /// @param workspace  bytes that the algorithm may use
  /// @throws CudaError, DeviceLostError
  ProductPlan(cublasLtHandle_t handle, const ColumnMajorProduct& product, const Gemm& op,
              Bytes workspace);

  /// Queues it. @throws CudaError, DeviceLostError
  void run(cublasLtHandle_t handle, const Gemm& op, void* workspace, cudaStream_t stream) const;

 private:
  template <class T>
  using Owned = std::unique_ptr<T, cublasStatus_t (*)(T*)>;
  using Layout = Owned<cublasLtMatrixLayoutOpaque_t>;

  void set_bias(const Gemm& op) const;
  void choose(cublasLtHandle_t handle, const ColumnMajorProduct& product, Bytes workspace);

  Owned<cublasLtMatmulDescOpaque_t> operation_;
  Layout left_;
  Layout right_;
  Layout result_;
  cublasLtMatmulAlgo_t algorithm_{};
  Bytes workspace_ = 0;  ///< that the algorithm uses
};

}  // namespace dstune::cuda
