// The sum of gradients over the ranks, in the type of communication and scaled.
#pragma once

#include "core/device/collectives.hpp"
#include "core/device/device.hpp"
#include "core/train/zero/reduction/gradient_scaling.hpp"

namespace dstune {

/// All on the current stream, in this order: cast, scale, sum, scale, cast back. The scaling
/// happens in the type of communication, as DeepSpeed's does.
struct GradientSum {
  Device& device;
  Collectives& collectives;
  DType dtype;  ///< of communication

  void all_reduce(Tensor inout, const GradientScaling& scaling) const;
  /// Only `root` gets the sum; `inout` is undefined on other ranks afterwards.
  void reduce(Tensor inout, int root) const;
};

}  // namespace dstune
