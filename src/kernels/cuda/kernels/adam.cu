#include <cassert>
#include <cmath>

#include "core/device/operations/adam.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct Update {
  float beta1;
  float beta2;
  float rest1;
  float rest2;
  float step_size;          // lr / (1 - beta1^t)
  float inverse_root_bias;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float keep;  // AdamW: 1 - lr * weight_decay
  float l2;    // Adam: weight_decay

  __device__ void operator()(std::int64_t, float gradient, float& p, float& m, float& v) const {
    const float g = gradient + l2 * p;
    m = beta1 * m + rest1 * g;
    v = beta2 * v + rest2 * g * g;
    p = p * keep - step_size * m / (sqrtf(v) * inverse_root_bias + epsilon);
  }
};

Update update_of(const AdamStep& step) {
  const auto t = static_cast<double>(step.step);
  const double bias1 = step.bias_correction ? 1 - std::pow(step.beta1, t) : 1;
  const double bias2 = step.bias_correction ? 1 - std::pow(step.beta2, t) : 1;
  return {static_cast<float>(step.beta1),
          static_cast<float>(step.beta2),
          static_cast<float>(1 - step.beta1),
          static_cast<float>(1 - step.beta2),
          static_cast<float>(step.lr / bias1),
          static_cast<float>(1 / std::sqrt(bias2)),
          static_cast<float>(step.epsilon),
          static_cast<float>(step.adam_w ? 1 - step.lr * step.weight_decay : 1),
          static_cast<float>(step.adam_w ? 0 : step.weight_decay)};
}

}  // namespace

void CudaDevice::compute(const Adam& op) {
  const std::int64_t numel = op.parameter.numel;
  assert(op.gradient.numel == numel && op.exp_avg.numel == numel && op.exp_avg_sq.numel == numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  for_each_element(stream(), numel, update_of(op.step), In<float>{elements<float>(op.gradient)},
                   InOut<float>{elements<float>(op.parameter)},
                   InOut<float>{elements<float>(op.exp_avg)},
                   InOut<float>{elements<float>(op.exp_avg_sq)});
}

}  // namespace dstune::cuda
