// One update by DeepSpeed's Lamb.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// One update of DeepSpeed's Lamb.
struct LambStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool epsilon_inside_root = false;
  double weight_decay = 0;
  bool bias_correction = true;
  double max_ratio = 10;
  double min_ratio = 0.01;
  double gradient_scale = 1;  ///< the gradient is divided by it
  std::int64_t step = 1;
};

/// The step's numbers as kernels need them.
struct LambCoefficients {
  float beta1;
  float beta2;
  float rest1;  ///< 1 - beta1
  float rest2;
  float unscale;        ///< of the gradient
  float inverse_bias1;  ///< 1 / (1 - beta1^t)
  float inverse_bias2;
  float inner_epsilon;  ///< under the root, or
  float outer_epsilon;  ///< after it
  float decay;
};

inline LambCoefficients coefficients_of(const LambStep& step) {
  const auto t = static_cast<double>(step.step);
  const double bias1 = step.bias_correction ? 1 - std::pow(step.beta1, t) : 1;
  const double bias2 = step.bias_correction ? 1 - std::pow(step.beta2, t) : 1;
  return {static_cast<float>(step.beta1),
          static_cast<float>(step.beta2),
          static_cast<float>(1 - step.beta1),
          static_cast<float>(1 - step.beta2),
          static_cast<float>(1 / step.gradient_scale),
          static_cast<float>(1 / bias1),
          static_cast<float>(1 / bias2),
          static_cast<float>(step.epsilon_inside_root ? step.epsilon : 0),
          static_cast<float>(step.epsilon_inside_root ? 0 : step.epsilon),
          static_cast<float>(step.weight_decay)};
}

/// The whole of a tensor, since its norm counts. Equal lengths; fp32 unless said otherwise.
struct Lamb {
  LambStep step = {};
  Tensor gradient;  ///< any dtype
  Tensor parameter;
  Tensor exp_avg;
  Tensor exp_avg_sq;
  Tensor copy = {};  ///< unless empty, gets the new parameter too; the gradient's dtype
};

// Two passes: moments and both norms, then the parameter, for which the update is computed again.
inline Work work_of(const Lamb& op) {
  return {"lamb",
          28 * count(op.parameter),
          {op.gradient, op.parameter, op.exp_avg, op.exp_avg_sq, op.parameter, op.exp_avg,
           op.exp_avg_sq},
          {op.exp_avg, op.exp_avg_sq, op.parameter, op.copy}};
}

}  // namespace dstune
