// One update by DeepSpeed's Lamb.
#pragma once

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
