#include "core/train/zero/offload/host_parameter_shards.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/offload/host_zeros.hpp"

namespace dstune {

HostParameterShards::HostParameterShards(Device& device, const StepConfig& config,
                                         const std::vector<ParameterGroup>& groups,
                                         const ShardLayout& layout, int rank, const Fill& fill)
    : device_(device),
      layout_(layout),
      dtype_(config.dtype),
      tier_of_alone_(config.pin_offloaded_parameters ? Tier::pinned : Tier::pageable),
      alone_(layout.tensor_count()),
      flat_of_(layout.tensor_count()) {
  for (std::size_t tensor = 0; tensor < layout.tensor_count(); ++tensor) {
    make_alone(tensor, config.pin_offloaded_parameters, rank, fill);
  }
  flatten(groups);
}

// DeepSpeed cuts each tensor of the model, which is on the device, as soon as it is made.
void HostParameterShards::make_alone(std::size_t tensor, bool pins, int rank, const Fill& fill) {
  HostZeros zeros(device_, pins);
  alone_[tensor] = zeros.make_only(MemoryCategory::parameters, layout_.shard(tensor), dtype_);
  const std::int64_t count = layout_.filled(tensor, rank);
  if (count == 0) return;
  const Buffer made = make_buffer(device_, MemoryCategory::temporaries, count, dtype_);
  fill(tensor, made.tensor(dtype_));
  copy_weights(device_, {made.tensor(dtype_)}, shard(tensor).slice(0, count));
}

// All groups get their tensors before any shard moves.
void HostParameterShards::flatten(const std::vector<ParameterGroup>& groups) {
  HostZeros zeros(device_, true);
  for (const ParameterGroup& group : groups) {
    std::int64_t numel = 0;
    for (const std::size_t tensor : group.tensors) {
      numel += layout_.shard(tensor);
      flat_of_[tensor] = flats_.size();
    }
    flats_.push_back({zeros.make_only(MemoryCategory::parameters, numel, dtype_),
                      layout_.offset(group.tensors.front())});
  }
  for (const ParameterGroup& group : groups) {
    for (const std::size_t tensor : group.tensors) {
      const Buffer left = std::exchange(alone_[tensor], {});
      device_.run_on_host(Copy{left.tensor(dtype_), shard(tensor).tensor});
    }
  }
}

PlacedTensor HostParameterShards::in_flat(std::size_t tensor, std::int64_t offset,
                                          std::int64_t count) const {
  const Flat& flat = flats_[flat_of_[tensor]];
  return {flat.buffer.tensor(dtype_).slice(offset - flat.begin, count), Tier::pinned};
}

PlacedTensor HostParameterShards::shard(std::size_t tensor) const {
  if (alone_[tensor]) return {alone_[tensor].tensor(dtype_), tier_of_alone_};
  return in_flat(tensor, layout_.offset(tensor), layout_.shard(tensor));
}

PlacedTensor HostParameterShards::of(const SubGroup& group) const {
  return in_flat(group.tensors.front(), group.offset, group.numel);
}

}  // namespace dstune
