#include "kernels/cuda/attention/philox.hpp"
#include "kernels/cuda/base/launch.cuh"

namespace dstune::cuda {

namespace {

__global__ void set_philox(std::uint64_t seed, std::int64_t* philox) {
  if (threadIdx.x > 0) return;
  philox[0] = static_cast<std::int64_t>(seed);
  philox[1] = 0;
}

}  // namespace

void queue_philox(std::uint64_t seed, std::int64_t* philox, cudaStream_t stream) {
  launch(stream, Grid{1, 32}, set_philox, seed, philox);
}

}  // namespace dstune::cuda
