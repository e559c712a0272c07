// Stage 3: where a rank's shards of the parameters live.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/device/device.hpp"
#include "core/train/zero/gather/shards_on_drive.hpp"
#include "core/train/zero/layout/placed_tensor.hpp"
#include "core/train/zero/layout/shard_layout.hpp"

namespace dstune {

/// This rank's shards of all parameters, frozen ones too, in the model dtype. Padding is zero.
/// Some may lie on a drive, from which they are read into a buffer of the host before they are
/// gathered; the functions that say so do nothing to others.
class ParameterShards {
 public:
  using Tensors = std::vector<std::size_t>;
  /// Gives `own`, which is on the device, the first values of what this rank has of a tensor,
  /// without padding.
  using Fill = std::function<void(std::size_t tensor, Tensor own)>;

  virtual ~ParameterShards() = default;
  ParameterShards(const ParameterShards&) = delete;
  ParameterShards& operator=(const ParameterShards&) = delete;

  /// The shard of a tensor, with padding; one that lies on a drive is in its buffer.
  virtual PlacedTensor shard(std::size_t tensor) const = 0;
  /// Those of a sub-group, if they lie one after the other.
  virtual std::optional<PlacedTensor> of(const SubGroup& group) const = 0;

  /// Null: none is on a drive.
  virtual const ShardsOnDrive* on_drive() const { return nullptr; }
  /// The host waits until these are in memory.
  /// @throws StepRefused  if DeepSpeed has too few buffers for them
  virtual void bring(const Tensors& /*tensors*/) {}
  /// Begins to read what is on a drive.
  /// @throws StepRefused  as above, or if DeepSpeed would read one twice
  virtual void read_ahead(const Tensors& /*tensors*/) {}
  /// Their full tensors are gone, so that they need no buffers.
  virtual void let_go(const Tensors& /*tensors*/) {}

  /// Converts what a sub-group has to `to`, one after the other; or the other way: these are the
  /// new values.
  virtual void read(const SubGroup& group, const PlacedTensor& to);
  virtual void write(const SubGroup& group, const PlacedTensor& from);
  /// Brings the first of `groups` into the host's memory, as many as there is room for, at least
  /// one: each lies one tensor after the other until the next call of this object. What comes from
  /// a drive is awaited once.
  /// @throws StepRefused  if DeepSpeed has no room for the first one
  virtual std::vector<PlacedTensor> bring_whole(std::span<const SubGroup> groups);
  /// Lets `use` read and write a shard. No part of a step.
  virtual void with_shard(std::size_t tensor, const std::function<void(PlacedTensor)>& use) {
    use(shard(tensor));
  }

 protected:
  /// @param device, layout  must outlive this
  ParameterShards(Device& device, const ShardLayout& layout) : device_(device), layout_(layout) {}

  Device& device() const { return device_; }
  const ShardLayout& layout() const { return layout_; }

 private:
  Device& device_;
  const ShardLayout& layout_;
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
  std::optional<PlacedTensor> of(const SubGroup& group) const override;

 private:
  DType dtype_;
  Buffer buffer_;
};

}  // namespace dstune
