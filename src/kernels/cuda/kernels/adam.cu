#include <cassert>

#include "core/device/operations/adam.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct Update {
  AdamCoefficients c;

  __device__ void operator()(std::int64_t, float gradient, float& p, float& m, float& v) const {
    const float g = gradient + c.l2 * p;
    m = c.beta1 * m + c.rest1 * g;
    v = c.beta2 * v + c.rest2 * g * g;
    p = p * c.keep - c.step_size * m / (sqrtf(v) * c.inverse_root_bias + c.epsilon);
  }
};

}  // namespace

void CudaDevice::compute(const Adam& op) {
  const std::int64_t numel = op.parameter.numel;
  assert(op.gradient.numel == numel && op.exp_avg.numel == numel && op.exp_avg_sq.numel == numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  for_each_element(
      stream(), numel, Update{coefficients_of(op.step)}, In<float>{elements<float>(op.gradient)},
      InOut<float>{elements<float>(op.parameter)}, InOut<float>{elements<float>(op.exp_avg)},
      InOut<float>{elements<float>(op.exp_avg_sq)});
}

}  // namespace dstune::cuda
