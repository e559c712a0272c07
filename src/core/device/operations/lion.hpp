// One update by DeepSpeed's Lion.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// One update of DeepSpeed's Lion. Where momentum and gradient are exactly 0 it adds lr, as
/// DeepSpeed's kernel does; the published rule leaves such a parameter alone.
struct LionStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double weight_decay = 0;
};

/// Everything fp32 and of equal length.
struct Lion {
  LionStep step = {};
  Tensor gradient;
  Tensor parameter;
  Tensor exp_avg;
};

// One pass.
inline Work work_of(const Lion& op) {
  return {"lion",
          9 * count(op.parameter),
          {op.gradient, op.parameter, op.exp_avg},
          {op.parameter, op.exp_avg}};
}

}  // namespace dstune
