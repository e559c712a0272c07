// The libraries' functions are those of CUDA on the host.
#include "kernels/cuda/libraries/cublas_lt.hpp"
#include "kernels/cuda/libraries/driver.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

const Library& here() {
  static const Library library{.path = "on the host", .problem = "", .handle = nullptr};
  return library;
}

}  // namespace

#define DSTUNE_CUBLAS_LT_HERE(function) .function = &::cublasLt##function,
const CublasLt& cublas_lt() {
  static const CublasLt functions{DSTUNE_CUBLAS_LT_FUNCTIONS(DSTUNE_CUBLAS_LT_HERE)};
  return functions;
}
#undef DSTUNE_CUBLAS_LT_HERE

#define DSTUNE_NCCL_HERE(function) .function = &::nccl##function,
const Nccl& nccl() {
  static const Nccl functions{DSTUNE_NCCL_FUNCTIONS(DSTUNE_NCCL_HERE)};
  return functions;
}
#undef DSTUNE_NCCL_HERE

#define DSTUNE_DRIVER_HERE(function) .function = &::cu##function,
const Driver& driver() {
  static const Driver functions{DSTUNE_DRIVER_FUNCTIONS(DSTUNE_DRIVER_HERE)};
  return functions;
}
#undef DSTUNE_DRIVER_HERE

const Library& cublas_lt_library() { return here(); }
const Library& nccl_library() { return here(); }
const Library& driver_library() { return here(); }

}  // namespace dstune::cuda
