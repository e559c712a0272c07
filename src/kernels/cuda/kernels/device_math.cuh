// What kernels/activations.hpp computes with on a GPU, as PyTorch's kernels do.
#pragma once

#include <cuda_runtime.h>

namespace dstune::cuda {

struct DeviceMath {
  struct Normal {
    float distribution;
    float exponential;
  };

  __host__ __device__ static float exp(float x) { return expf(x); }
  __host__ __device__ static float tanh(float x) { return tanhf(x); }
  __host__ __device__ static Normal normal(float x) { return {normcdff(x), expf(-0.5F * x * x)}; }
};

}  // namespace dstune::cuda
