// The sum of gradients over the ranks, in the type of communication and scaled.
#pragma once

#include <functional>
#include <optional>

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/experiment/step_config.hpp"

namespace dstune {

/// The factors that gradients are multiplied by before and after their sum
/// (docs/decisions/gradient-averages.md); none: that pass is not made, whatever the factor would
/// be.
struct GradientScaling {
  std::optional<double> before;
  std::optional<double> after;
};

/// The scaling where DeepSpeed reads prescale_gradients and gradient_predivide_factor f: in stage
/// 0, in the BF16 optimizer, and in stages 1 and 2 with reduce_scatter = false and
/// contiguous_gradients.
///
///   default        after 1/N, for N > 1     f != 1    before 1/f, after f/N, for N != f
///   prescale       before 1/N               "sum"     none
GradientScaling configured_scaling(const StepConfig& config, int ranks);

/// The scaling of the other ways of stages 1 and 2, which divide first and read none of those keys:
/// before 1/N; with "sum" none.
GradientScaling division_first(const StepConfig& config, int ranks);

/// Sums gradients up, all on the current stream, in this order: cast, scale, sum, scale, cast back.
/// The scaling happens in the type of communication, as in DeepSpeed.
struct GradientSum {
  Device& device;
  Collectives& collectives;
  DType dtype;  ///< the type of communication

  /// Is given the sum as it comes out of the collective: scaled, and in the type of communication.
  using Take = std::function<void(Tensor sum)>;

  void all_reduce(Tensor inout, const GradientScaling& scaling, const Take& take = {}) const;
  /// Only `root` gets the sum; `inout` is undefined on other ranks afterwards.
  void reduce(Tensor inout, int root, const Take& take = {}) const;
};

}  // namespace dstune
