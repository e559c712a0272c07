#include <cassert>

#include "core/device/operations/lion.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct Update {
  float lr;
  float beta1;
  float beta2;
  float rest1;
  float rest2;
  float keep;

  __device__ void operator()(std::int64_t, float g, float& p, float& m) const {
    const float direction = beta1 * m + rest1 * g;
    p = p * keep + (direction > 0 ? -lr : lr);
    m = beta2 * m + rest2 * g;
  }
};

}  // namespace

void CudaDevice::compute(const Lion& op) {
  const LionStep& step = op.step;
  assert(op.gradient.numel == op.parameter.numel && op.exp_avg.numel == op.parameter.numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const Update update{
      static_cast<float>(step.lr),        static_cast<float>(step.beta1),
      static_cast<float>(step.beta2),     static_cast<float>(1 - step.beta1),
      static_cast<float>(1 - step.beta2), static_cast<float>(1 - step.lr * step.weight_decay)};
  for_each_element(stream(), op.parameter.numel, update, In<float>{elements<float>(op.gradient)},
                   InOut<float>{elements<float>(op.parameter)},
                   InOut<float>{elements<float>(op.exp_avg)});
}

}  // namespace dstune::cuda
