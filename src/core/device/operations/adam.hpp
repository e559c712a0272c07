// One update by AdamW, or by Adam with L2 decay.
#pragma once

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
