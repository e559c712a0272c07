#include "core/device/operations/adam.hpp"

#include <cassert>
#include <cmath>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// The step's numbers as the loop needs them.
struct Coefficients {
  float beta1;
  float beta2;
  float one_minus_beta1;
  float one_minus_beta2;
  float step_size;          // lr / (1 - beta1^t)
  float inverse_root_bias;  // 1 / sqrt(1 - beta2^t)
  float epsilon;
  float keep;  // AdamW: 1 - lr * weight_decay
  float l2;    // Adam: weight_decay
};

Coefficients coefficients_of(const AdamStep& step) {
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

void update(const Coefficients& c, const float* gradient, float* parameter, float* exp_avg,
            float* exp_avg_sq, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float p = parameter[i];
    const float g = gradient[i] + c.l2 * p;
    const float m = c.beta1 * exp_avg[i] + c.one_minus_beta1 * g;
    const float v = c.beta2 * exp_avg_sq[i] + c.one_minus_beta2 * g * g;
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
  const Coefficients coefficients = coefficients_of(op.step);
  for_chunks(*this, numel, [=](std::int64_t begin, std::int64_t end) {
    update(coefficients, elements<float>(op.gradient) + begin,
           elements<float>(op.parameter) + begin, elements<float>(op.exp_avg) + begin,
           elements<float>(op.exp_avg_sq) + begin, end - begin);
  });
}

}  // namespace dstune::cpu
