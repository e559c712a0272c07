// One update by AdamW, or by Adam with L2 decay.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// One AdamW (or Adam with L2 decay) update.
struct AdamStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool adam_w = true;  ///< decoupled decay (AdamW); false: decay is added to the gradient
  bool bias_correction = true;
  std::int64_t step = 1;  ///< 1 at the first update
};

/// The step's numbers as kernels need them.
struct AdamCoefficients {
  float beta1;
  float beta2;
  float rest1;  ///< 1 - beta1
  float rest2;
  float step_size;          ///< lr / (1 - beta1^t)
  float inverse_root_bias;  ///< 1 / sqrt(1 - beta2^t)
  float epsilon;
  float keep;  ///< AdamW: 1 - lr * weight_decay
  float l2;    ///< Adam: weight_decay
};

inline AdamCoefficients coefficients_of(const AdamStep& step) {
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

/// Everything fp32 and of equal length.
struct Adam {
  AdamStep step = {};
  Tensor gradient;
  Tensor parameter;
  Tensor exp_avg;
  Tensor exp_avg_sq;
};

// One pass.
inline Work work_of(const Adam& op) {
  return {"adam",
          14 * count(op.parameter),
          {op.gradient, op.parameter, op.exp_avg, op.exp_avg_sq},
          {op.parameter, op.exp_avg, op.exp_avg_sq}};
}

}  // namespace dstune
