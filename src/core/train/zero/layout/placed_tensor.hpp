// A tensor and the memory in which it lives, and PyTorch's copies from one to another.
#pragma once

#include "core/device/device.hpp"
#include "core/device/memory/tier.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

struct PlacedTensor {
  Tensor tensor;
  Tier tier = Tier::device;

  /// Elements [offset, offset + count).
  PlacedTensor slice(std::int64_t offset, std::int64_t count) const {
    return {tensor.slice(offset, count), tier};
  }
};

/// Tensor.copy_(), between weights and what is made of them: `to` gets the values of `from`, which
/// has the same length and may have another floating-point type. Where they live on the same side
/// it is a pass there (MemoryPass::master_cast). Else it is a transfer (TransferPurpose::update)
/// that the host waits for; types are converted on the host, by such a pass, from or into a
/// temporary tensor in pageable memory.
void copy_weights(Device& device, const PlacedTensor& from, const PlacedTensor& to);

}  // namespace dstune
