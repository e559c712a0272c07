// One update of a tensor by each optimizer: its numbers, and the memory traffic of its passes.
#pragma once

#include <cstdint>

#include "core/base/units.hpp"

namespace dstune {

/// Bytes that an update reads and writes per element, all its passes together.
struct UpdateTraffic {
  Bytes read = 0;
  Bytes written = 0;

  Bytes total() const { return read + written; }
  bool operator==(const UpdateTraffic&) const = default;
};

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

/// One update of torch.optim.SGD.
struct SgdStep {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool first = false;  ///< the momentum becomes the gradient itself, without dampening
};

/// One update of DeepSpeed's Lion. Where momentum and gradient are exactly 0 it adds lr, as
/// DeepSpeed's kernel does; the published rule leaves such a parameter alone.
struct LionStep {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double weight_decay = 0;
};

/// One update of torch.optim.Adagrad.
struct AdagradStep {
  double lr = 1e-2;  ///< of this update: lr / (1 + (step - 1) lr_decay)
  double epsilon = 1e-10;
  double weight_decay = 0;
};

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

/// One pass: reads gradient, parameter and moments, writes the last three.
constexpr UpdateTraffic traffic_of(const AdamStep& /*step*/) { return {16, 12}; }

/// torch's passes: decay into a scratch tensor; momentum scaled, then added to (copied in the first
/// update); with nesterov added to the gradient; the parameter.
constexpr UpdateTraffic traffic_of(const SgdStep& step) {
  UpdateTraffic traffic{8, 4};
  const auto add = [&traffic](Bytes read, Bytes written) {
    traffic.read += read;
    traffic.written += written;
  };
  if (step.weight_decay != 0) add(8, 4);
  if (step.momentum == 0) return traffic;
  if (step.first) {
    add(4, 4);
  } else {
    add(12, 8);
  }
  if (step.nesterov) add(8, 4);
  return traffic;
}

/// One pass over gradient, parameter and momentum.
constexpr UpdateTraffic traffic_of(const LionStep& /*step*/) { return {12, 8}; }

/// torch's passes: decay into a scratch tensor; sum of squares; root; epsilon; gradient times rate;
/// the parameter.
constexpr UpdateTraffic traffic_of(const AdagradStep& step) {
  UpdateTraffic traffic{8 + 4 + 4 + 4 + 12, 4 + 4 + 4 + 4 + 4};
  if (step.weight_decay != 0) {
    traffic.read += 8;
    traffic.written += 4;
  }
  return traffic;
}

/// Two passes: moments and both norms, then the parameter, for which the update is computed again.
/// @param gradient  bytes of an element of the gradient
/// @param copy      of the 16-bit copy of the parameter that is written too; 0: none
constexpr UpdateTraffic traffic_of(const LambStep& /*step*/, Bytes gradient, Bytes copy) {
  return {gradient + 12 + 12, 8 + 4 + copy};
}

}  // namespace dstune
