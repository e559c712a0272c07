// Tests on the CUDA backend: rank r drives GPU r.
#include "kernels/cuda/cuda_backend.hpp"
#include "tests/support/test_backend.hpp"

namespace dstune::test {

std::unique_ptr<Backend> make_test_backend(int rank) {
  return std::make_unique<cuda::CudaBackend>(rank);
}

AllocatorModel test_allocator() { return AllocatorModel::caching; }

}  // namespace dstune::test
