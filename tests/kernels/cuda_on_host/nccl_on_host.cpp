// NCCL's functions are those of CUDA on the host.
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

const Nccl& nccl() {
#define DSTUNE_NCCL_HERE(function) .function = &::nccl##function,
  static const Nccl functions{DSTUNE_NCCL_FUNCTIONS(DSTUNE_NCCL_HERE)};
#undef DSTUNE_NCCL_HERE
  return functions;
}

const Library& nccl_library() {
  static const Library library{.path = "on the host", .problem = "", .handle = nullptr};
  return library;
}

}  // namespace dstune::cuda
