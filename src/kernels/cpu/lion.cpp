#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

void CpuDevice::lion(const LionStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg) {
  assert(gradient.numel == parameter.numel && exp_avg.numel == parameter.numel);
  assert(gradient.dtype == DType::fp32 && parameter.dtype == DType::fp32);
  const auto lr = static_cast<float>(step.lr);
  const auto beta1 = static_cast<float>(step.beta1);
  const auto beta2 = static_cast<float>(step.beta2);
  const auto rest1 = static_cast<float>(1 - step.beta1);
  const auto rest2 = static_cast<float>(1 - step.beta2);
  const auto keep = static_cast<float>(1 - step.lr * step.weight_decay);
  const float* const g = elements<float>(gradient);
  float* const p = elements<float>(parameter);
  float* const m = elements<float>(exp_avg);
  for_chunks(*this, parameter.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const float direction = beta1 * m[i] + rest1 * g[i];
      p[i] = p[i] * keep + (direction > 0 ? -lr : lr);
      m[i] = beta2 * m[i] + rest2 * g[i];
    }
  });
}

}  // namespace dstune::cpu
