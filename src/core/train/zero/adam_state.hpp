// fp32 optimizer state of one flat piece of the model.
#pragma once

#include <cstdint>

#include "core/train/device.hpp"
#include "core/train/tensor.hpp"

namespace dstune {

/// The two moments of Adam. Category optimizer.
class AdamMoments {
 public:
  /// Allocates and zeroes them unless they exist: ZeRO and plain fp32 training do so in the first
  /// update, the 16-bit wrappers of stage 0 at the start.
  void ensure(Device& device, std::int64_t numel);

  /// One update of `parameter` (fp32) by `gradient` (fp32); allocates the moments if needed.
  void update(Device& device, const AdamStep& step, Tensor gradient, Tensor parameter);

 private:
  Buffer exp_avg_;
  Buffer exp_avg_sq_;
};

}  // namespace dstune
