// One update by torch.optim.SGD.
#pragma once

#include <initializer_list>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// One update of torch.optim.SGD.
struct SgdStep {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first = false;  ///< the momentum becomes the gradient itself, without dampening
};

/// Everything fp32 and of equal length. The gradient may be changed.
struct Sgd {
  SgdStep step = {};
  Tensor gradient;
  Tensor parameter;
  Tensor momentum = {};  ///< not used without momentum
  Tensor decayed = {};   ///< scratch; not used without weight decay
};

// torch's passes: decay into a scratch tensor; momentum scaled, then added to (copied in the first
// update); with nesterov added to the gradient; the parameter.
inline Work work_of(const Sgd& op) {
  Work work{"sgd", 8 * count(op.parameter), {}, {}};
  const auto pass = [&work](std::initializer_list<Operand> reads, const Tensor& write) {
    work.reads.add(reads);
    work.writes.add(write);
  };
  const bool decays = op.step.weight_decay != 0;
  Tensor direction = decays ? op.decayed : op.gradient;
  if (decays) pass({op.gradient, op.parameter}, op.decayed);
  if (op.step.momentum != 0) {
    if (op.step.first) {
      pass({direction}, op.momentum);
    } else {
      pass({op.momentum}, op.momentum);
      pass({op.momentum, direction}, op.momentum);
    }
    if (op.step.nesterov) {
      pass({direction, op.momentum}, direction);
    } else {
      direction = op.momentum;
    }
  }
  pass({op.parameter, direction}, op.parameter);
  return work;
}

}  // namespace dstune
