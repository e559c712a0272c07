// The arithmetic of optimizers, in fp32, for every backend that computes.
#pragma once

#include <cstdint>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/optimizers.hpp"

namespace dstune {

// An update is a functor of an element's index and values. Its functions are constexpr because nvcc
// compiles constexpr functions for the GPU, too. Math is what a backend computes with: root(x).

template <class Math>
struct AdamUpdate {
  AdamCoefficients c;

  constexpr void operator()(std::int64_t, float gradient, float& p, float& m, float& v) const {
    const float g = gradient + c.l2 * p;
    m = c.beta1 * m + c.rest1 * g;
    v = c.beta2 * v + c.rest2 * g * g;
    p = p * c.keep - c.step_size * m / (Math::root(v) * c.inverse_root_bias + c.epsilon);
  }
};

struct LionUpdate {
  explicit LionUpdate(const LionStep& step)
      : lr(static_cast<float>(step.lr)),
        beta1(static_cast<float>(step.beta1)),
        beta2(static_cast<float>(step.beta2)),
        rest1(static_cast<float>(1 - step.beta1)),
        rest2(static_cast<float>(1 - step.beta2)),
        keep(static_cast<float>(1 - step.lr * step.weight_decay)) {}

  constexpr void operator()(std::int64_t, float g, float& p, float& m) const {
    const float direction = beta1 * m + rest1 * g;
    p = p * keep + (direction > 0 ? -lr : lr);
    m = beta2 * m + rest2 * g;
  }

  float lr;
  float beta1;
  float beta2;
  float rest1;
  float rest2;
  float keep;
};

template <class Math>
struct LambUpdate {
  LambCoefficients c;

  constexpr void add_to_moments(float scaled_gradient, float& m, float& v) const {
    const float gradient = scaled_gradient * c.unscale;
    m = c.beta1 * m + c.rest1 * gradient;
    v = c.beta2 * v + c.rest2 * gradient * gradient;
  }
  /// The update of the parameter p before its rate.
  constexpr float value(float m, float v, float p) const {
    const float root = Math::root(v * c.inverse_bias2 + c.inner_epsilon) + c.outer_epsilon;
    return m * c.inverse_bias1 / root + c.decay * p;
  }
};

/// lr * |parameter| / |update|, the ratio within its bounds; NaN stays NaN.
/// @param parameter, update  the sums of their squares
template <class Math>
constexpr float lamb_rate(const LambStep& step, double parameter, double update) {
  double ratio = 1;
  if (parameter != 0 && update != 0) {
    ratio = Math::root(parameter / update);
    ratio = ratio < step.min_ratio ? step.min_ratio : ratio;
    ratio = ratio > step.max_ratio ? step.max_ratio : ratio;
  }
  return static_cast<float>(step.lr * ratio);
}

/// The passes of torch.optim.SGD over its lists of tensors.
/// @param run         run(operation) computes it
/// @param add_scaled  add_scaled(x, factor, y, out): out = x + factor * y; out may be x
template <class Run, class AddScaled>
void run_passes(const Sgd& op, Run run, AddScaled add_scaled) {
  const SgdStep& step = op.step;
  Tensor direction = op.gradient;
  if (step.weight_decay != 0) {
    add_scaled(op.gradient, step.weight_decay, op.parameter, op.decayed);
    direction = op.decayed;
  }
  if (step.momentum != 0) {
    if (step.first) {
      run(Copy{direction, op.momentum});
    } else {
      run(Scale{op.momentum, step.momentum});
      add_scaled(op.momentum, 1 - step.dampening, direction, op.momentum);
    }
    if (step.nesterov) {
      add_scaled(direction, step.momentum, op.momentum, direction);
    } else {
      direction = op.momentum;
    }
  }
  add_scaled(op.parameter, -step.lr, direction, op.parameter);
}

}  // namespace dstune
