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

void CpuDevice::adam(const AdamStep& step, Tensor gradient, Tensor parameter, Tensor exp_avg,
                     Tensor exp_avg_sq) {
  assert(gradient.numel == parameter.numel && exp_avg.numel == parameter.numel &&
         exp_avg_sq.numel == parameter.numel);
  assert(gradient.dtype == DType::fp32 && parameter.dtype == DType::fp32);
  const Coefficients coefficients = coefficients_of(step);
  for_chunks(*this, parameter.numel, [=](std::int64_t begin, std::int64_t end) {
    update(coefficients, elements<float>(gradient) + begin, elements<float>(parameter) + begin,
           elements<float>(exp_avg) + begin, elements<float>(exp_avg_sq) + begin, end - begin);
  });
}

}  // namespace dstune::cpu
