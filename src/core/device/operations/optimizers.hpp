// The updates of optimizers, and the norm of gradients before them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// sum += the squares of `in`, which are added up in double.
struct AddSquares {
  Tensor in;
  Tensor sum;  ///< fp32 or fp64, one element
};

/// flag = 1 if `in` has an inf or a NaN; otherwise it stays as it is.
struct FindInfOrNan {
  Tensor in;
  Tensor flag;  ///< uint8, one element
};

/// The factor that undoes the loss scale and clips: factor = 1 / (loss_scale * max(1, (norm + 1e-6)
/// / clipping)), where norm is that of the unscaled gradients, sqrt(squares) / loss_scale.
struct ClipFactor {
  Tensor squares;       ///< fp32 or fp64, one element
  double clipping = 0;  ///< 0: none
  double loss_scale = 1;
  Tensor factor;  ///< fp32, one element
};

/// ClipFactor's factor for a host that knows the squares.
inline double clip_factor(double squares, double clipping, double loss_scale) {
  const double norm = std::sqrt(squares) / loss_scale;
  const double excess = clipping > 0 ? std::max(1.0, (norm + 1e-6) / clipping) : 1.0;
  return 1 / (loss_scale * excess);
}

inline Work work_of(const AddSquares& op) {
  return {"add_squares", 2 * count(op.in), {op.in, number(op.sum)}, {number(op.sum)}};
}
inline Work work_of(const FindInfOrNan& op) {
  return {"find_inf_or_nan", count(op.in), {op.in}, {number(op.flag)}};
}
inline Work work_of(const ClipFactor& op) {
  return {"clip_factor", 6, {number(op.squares)}, {number(op.factor)}};
}

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

/// The numbers of the step in the form that kernels need.
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

/// All tensors are fp32 and of equal length.
struct Adam {
  AdamStep step = {};
  Tensor gradient;
  Tensor parameter;
  Tensor exp_avg;
  Tensor exp_avg_sq;
};

// The update is one pass.
inline Work work_of(const Adam& op) {
  return {"adam",
          14 * count(op.parameter),
          {op.gradient, op.parameter, op.exp_avg, op.exp_avg_sq},
          {op.parameter, op.exp_avg, op.exp_avg_sq}};
}

/// One update of torch.optim.Adagrad.
struct AdagradStep {
  double lr = 1e-2;  ///< the rate of this update: lr / (1 + (step - 1) lr_decay)
  double epsilon = 1e-10;
  double weight_decay = 0;
};

/// All tensors are fp32 and of equal length.
struct Adagrad {
  AdagradStep step = {};
  Tensor gradient;
  Tensor parameter;
  Tensor sum;        ///< the sum of the squares of all gradients
  Tensor numerator;  ///< scratch; none for DeepSpeed's CPU Adagrad, which makes one pass
  Tensor root;       ///< scratch, likewise
};

// torch makes these passes: decay into a scratch tensor; sum of squares; root; epsilon; gradient
// times rate; the parameter.
inline Work work_of(const Adagrad& op) {
  if (op.root.numel == 0) {
    return {"adagrad",
            9 * count(op.parameter),
            {op.gradient, op.parameter, op.sum},
            {op.parameter, op.sum}};
  }
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

/// The numbers of the step in the form that kernels need.
struct LambCoefficients {
  float beta1;
  float beta2;
  float rest1;  ///< 1 - beta1
  float rest2;
  float unscale;        ///< multiplies the gradient
  float inverse_bias1;  ///< 1 / (1 - beta1^t)
  float inverse_bias2;
  float inner_epsilon;  ///< added under the root, or
  float outer_epsilon;  ///< added after the root
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

/// The operands are whole tensors, since Lamb uses their norms. They have equal lengths, and are
/// fp32 unless said otherwise.
struct Lamb {
  LambStep step = {};
  Tensor gradient;  ///< any dtype
  Tensor parameter;
  Tensor exp_avg;
  Tensor exp_avg_sq;
  Tensor copy = {};  ///< gets the new parameter too, unless empty; in the gradient's dtype
};

// There are two passes: one makes moments and both norms, the other the parameter, for which the
// update is computed again.
inline Work work_of(const Lamb& op) {
  return {"lamb",
          28 * count(op.parameter),
          {op.gradient, op.parameter, op.exp_avg, op.exp_avg_sq, op.parameter, op.exp_avg,
           op.exp_avg_sq},
          {op.exp_avg, op.exp_avg_sq, op.parameter, op.copy}};
}

/// One update of DeepSpeed's Lion. Where momentum and gradient are exactly 0, it adds lr, as
/// DeepSpeed's kernel does; the published rule leaves such a parameter unchanged.
struct LionStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double weight_decay = 0;
};

/// All tensors are fp32 and of equal length.
struct Lion {
  LionStep step = {};
  Tensor gradient;
  Tensor parameter;
  Tensor exp_avg;
};

// The update is one pass.
inline Work work_of(const Lion& op) {
  return {"lion",
          9 * count(op.parameter),
          {op.gradient, op.parameter, op.exp_avg},
          {op.parameter, op.exp_avg}};
}

/// One update of torch.optim.SGD.
struct SgdStep {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first = false;  ///< the momentum becomes the gradient itself, without dampening
};

/// All tensors are fp32 and of equal length. The gradient may be changed.
struct Sgd {
  SgdStep step = {};
  Tensor gradient;
  Tensor parameter;
  Tensor momentum = {};  ///< not used without momentum
  Tensor decayed = {};   ///< scratch; not used without weight decay
};

// torch makes these passes: decay into a scratch tensor; momentum is scaled, and the gradient added
// to it (copied into it in the first update); with nesterov it is added to the gradient; the
// parameter.
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
