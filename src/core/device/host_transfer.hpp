// A copy between the memories of a device and its host.
#pragma once

#include "core/device/ledger/ledger.hpp"
#include "core/device/memory/tier.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Two tensors of the same dtype and length, of which one lies in the host's memory.
struct HostTransfer {
  Tensor from;
  Tensor to;
  Transfer direction = Transfer::device_to_host;
  TransferPurpose purpose = TransferPurpose::gradient;
  Tier tier = Tier::pinned;  ///< of the tensor in the host's memory
  bool is_blocking = false;  ///< false: PyTorch's non_blocking

  /// Whether the host goes on only when it is done: where a driver copies through memory of its
  /// own, it always does.
  bool waits() const { return is_blocking || tier != Tier::pinned; }
};

}  // namespace dstune
