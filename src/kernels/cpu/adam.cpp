#include "core/device/operations/adam.hpp"

#include <cassert>
#include <cmath>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

void update(const AdamCoefficients& c, const float* gradient, float* parameter, float* exp_avg,
            float* exp_avg_sq, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float p = parameter[i];
    const float g = gradient[i] + c.l2 * p;
    const float m = c.beta1 * exp_avg[i] + c.rest1 * g;
    const float v = c.beta2 * exp_avg_sq[i] + c.rest2 * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    parameter[i] = p * c.keep - c.step_size * m / (std::sqrt(v) * c.inverse_root_bias + c.epsilon);
  }
}

}  // namespace

void CpuDevice::compute(const Adam& op) {
  const std::int64_t numel = op.parameter.numel;
  assert(op.gradient.numel == numel && op.exp_avg.numel == numel && op.exp_avg_sq.numel == numel);
  assert(op.gradient.dtype == DType::fp32 && op.parameter.dtype == DType::fp32);
  const AdamCoefficients coefficients = coefficients_of(op.step);
  for_chunks(*this, numel, [=](std::int64_t begin, std::int64_t end) {
    update(coefficients, elements<float>(op.gradient) + begin,
           elements<float>(op.parameter) + begin, elements<float>(op.exp_avg) + begin,
           elements<float>(op.exp_avg_sq) + begin, end - begin);
  });
}

}  // namespace dstune::cpu
