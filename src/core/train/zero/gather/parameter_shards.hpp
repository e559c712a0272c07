// Stage 3: where a rank's shards of the parameters live.
#pragma once

#include <cstddef>
#include <functional>

#include "core/device/device.hpp"
#include "core/train/zero/layout/placed_tensor.hpp"
#include "core/train/zero/layout/shard_layout.hpp"

namespace dstune {

/// This rank's shards of all parameters, frozen ones too, in the model dtype. Padding is zero.
class ParameterShards {
 public:
  /// Gives `own`, which is on the device, the first values of what this rank has of a tensor,
  /// without padding.
  using Fill = std::function<void(std::size_t tensor, Tensor own)>;

  ParameterShards() = default;
  virtual ~ParameterShards() = default;
  ParameterShards(const ParameterShards&) = delete;
  ParameterShards& operator=(const ParameterShards&) = delete;

  /// The shard of a tensor, with padding.
  virtual PlacedTensor shard(std::size_t tensor) const = 0;
  /// Those of a sub-group, which lie one after the other.
  virtual PlacedTensor of(const SubGroup& group) const = 0;
};

/// Copies a shard that lives on the host to `to`, which is on the device, on the current stream.
/// @param is_blocking  the host waits for it
void bring_shard(Device& device, const PlacedTensor& shard, Tensor to, bool is_blocking);
/// A shard on the device: where it lives, or else `copy`, which is made, and for which the host
/// waits.
Tensor shard_on_device(Device& device, const PlacedTensor& shard, Buffer& copy);

/// All of them in one buffer on the device, as `layout` has them.
class DeviceParameterShards final : public ParameterShards {
 public:
  /// @param layout  must outlive this
  DeviceParameterShards(Device& device, const ShardLayout& layout, int rank, DType dtype,
                        const Fill& fill);

  PlacedTensor shard(std::size_t tensor) const override;
  PlacedTensor of(const SubGroup& group) const override;

 private:
  const ShardLayout& layout_;
  DType dtype_;
  Buffer buffer_;
};

}  // namespace dstune
