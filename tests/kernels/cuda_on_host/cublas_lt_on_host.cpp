// cuBLASLt's functions are those of CUDA on the host.
#include "kernels/cuda/libraries/cublas_lt.hpp"

namespace dstune::cuda {

const CublasLt& cublas_lt() {
#define DSTUNE_CUBLAS_LT_HERE(function) .function = &::cublasLt##function,
  static const CublasLt functions{DSTUNE_CUBLAS_LT_FUNCTIONS(DSTUNE_CUBLAS_LT_HERE)};
#undef DSTUNE_CUBLAS_LT_HERE
  return functions;
}

const Library& cublas_lt_library() {
  static const Library library{.path = "on the host", .problem = "", .handle = nullptr};
  return library;
}

}  // namespace dstune::cuda
