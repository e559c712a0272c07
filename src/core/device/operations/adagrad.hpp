// One update by torch.optim.Adagrad.
#pragma once

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// One update of torch.optim.Adagrad.
struct AdagradStep {
  double lr = 1e-2;  ///< of this update: lr / (1 + (step - 1) lr_decay)
  double epsilon = 1e-10;
  double weight_decay = 0;
};

/// Everything fp32 and of equal length.
struct Adagrad {
  AdagradStep step = {};
  Tensor gradient;
  Tensor parameter;
  Tensor sum;        ///< of the squares of all gradients
  Tensor numerator;  ///< scratch
  Tensor root;       ///< scratch
};

// torch's passes: decay into a scratch tensor; sum of squares; root; epsilon; gradient times rate;
// the parameter.
inline Work work_of(const Adagrad& op) {
  const bool decays = op.step.weight_decay != 0;
  const Tensor& direction = decays ? op.numerator : op.gradient;
  Work work{"adagrad",
            9 * count(op.parameter),
            {direction, op.sum, op.sum, op.root, direction, op.parameter, op.numerator, op.root},
            {op.sum, op.root, op.root, op.numerator, op.parameter}};
  if (decays) {
    work.reads.add({op.gradient, op.parameter});
    work.writes.add(op.numerator);
  }
  return work;
}

}  // namespace dstune
