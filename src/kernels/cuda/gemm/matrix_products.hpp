// cuBLASLt: its handle, its workspace, and the algorithm of every shape seen.
#pragma once

#include <memory>

#include <cuda_runtime_api.h>

#include "core/base/units.hpp"
#include "core/device/operations/gemm.hpp"

namespace dstune::cuda {

/// PyTorch's workspace for cuBLAS (getChosenWorkspaceSize), whose algorithms are the ones that fit
/// into it.
/// @param major  of the GPU's compute capability
Bytes cublas_workspace(int major);

/// Lives as long as the process: what a shape needs is looked up once. Used by one thread, on one
/// stream at a time.
class MatrixProducts {
 public:
  /// Takes the workspace.
  /// @throws CudaError, DeviceLostError; Error if the library is not there
  MatrixProducts();
  ~MatrixProducts();
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  /// Queues `op` on `stream`.
  /// @throws CudaError, DeviceLostError
  void run(const Gemm& op, cudaStream_t stream);

  /// The device memory that it has outside every budget.
  Bytes workspace() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dstune::cuda
