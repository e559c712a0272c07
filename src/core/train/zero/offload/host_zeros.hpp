// Tensors of zeros in the host's memory, as PyTorch makes them.
#pragma once

#include "core/device/device.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Makes tensors in pageable memory and, where they are to be pinned, a pinned copy of each, beside
/// which the original lives until the next tensor is made or this object ends: so it is with a
/// Python variable that the original was assigned to.
class HostZeros {
 public:
  HostZeros(Device& device, bool pins) : device_(device), pins_(pins) {}

  Tier tier() const { return pins_ ? Tier::pinned : Tier::pageable; }
  Buffer make(MemoryCategory category, std::int64_t numel, DType dtype);
  /// The same where the variable was assigned the pinned copy.
  Buffer make_only(MemoryCategory category, std::int64_t numel, DType dtype);
  /// Assigns them to `variable`, which keeps what it had until the zeros are there.
  void make_in(Buffer& variable, MemoryCategory category, std::int64_t numel, DType dtype);

 private:
  Buffer zeros(MemoryCategory category, std::int64_t numel, DType dtype);
  Buffer pinned(const Buffer& original, MemoryCategory category, DType dtype);

  Device& device_;
  bool pins_;
  Buffer original_;
};

}  // namespace dstune
