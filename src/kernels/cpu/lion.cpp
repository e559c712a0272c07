#include "core/device/operations/lion.hpp"

#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const Lion& op) {
  const LionStep& step = op.step;
  assert(op.gradient.numel == op.parameter.numel && op.exp_avg.numel == op.parameter.numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const auto lr = static_cast<float>(step.lr);
  const auto beta1 = static_cast<float>(step.beta1);
  const auto beta2 = static_cast<float>(step.beta2);
  const auto rest1 = static_cast<float>(1 - step.beta1);
  const auto rest2 = static_cast<float>(1 - step.beta2);
  const auto keep = static_cast<float>(1 - step.lr * step.weight_decay);
  const auto* const g = elements<float>(op.gradient);
  auto* const p = elements<float>(op.parameter);
  auto* const m = elements<float>(op.exp_avg);
  for_chunks(*this, op.parameter.numel, [=](std::int64_t begin, std::int64_t end) {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const float direction = beta1 * m[i] + rest1 * g[i];
      p[i] = p[i] * keep + (direction > 0 ? -lr : lr);
      m[i] = beta2 * m[i] + rest2 * g[i];
    }
  });
}

}  // namespace dstune::cpu
