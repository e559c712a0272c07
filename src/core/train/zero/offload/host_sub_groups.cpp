#include "core/train/zero/offload/host_sub_groups.hpp"

#include <algorithm>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/offload/host_zeros.hpp"
#include "core/train/zero/offload/send_gradient.hpp"

namespace dstune {

HostSubGroups::HostSubGroups(Device& device, const StepConfig& config, const ShardLayout& layout,
                             const ParameterShards& shards)
    : device_(device),
      layout_(layout),
      shards_(shards),
      dtype_(config.dtype),
      tier_(config.pin_offloaded_optimizer ? Tier::pinned : Tier::pageable),
      groups_(layout.sub_groups().size()),
      place_of_(layout.tensor_count()) {
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    for (const std::size_t tensor : layout.sub_groups()[i].tensors) place_of_[tensor] = i;
  }
  begin_masters(config);
  begin_gradients(config.pin_offloaded_optimizer);
}

void HostSubGroups::begin_masters(const StepConfig& config) {
  const std::size_t on_device = config.sub_groups_on_device(groups_.size());
  Buffer converted;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const PlacedTensor parameters = shards_.of(layout_.sub_groups()[i]);
    if (i < on_device) {
      groups_[i].on_device = std::make_unique<DeviceSubGroup>(device_, config, parameters.tensor);
    } else {
      groups_[i].master = begin_master(parameters, converted);
    }
  }
}

// DeepSpeed clones what to() gives it, and a variable keeps that until the next one is there: what
// it has converted, or nothing new where the values are on the host in fp32.
Buffer HostSubGroups::begin_master(PlacedTensor parameters, Buffer& converted) {
  Buffer next;
  Tensor values = parameters.tensor;
  if (!is_of_host(parameters.tier) || dtype_ != DType::fp32) {
    next = on_host(MemoryCategory::optimizer, values.numel, DType::fp32);
    values = next.tensor(DType::fp32);
    copy_weights(device_, parameters, {values, Tier::pageable});
  }
  converted = std::move(next);
  Buffer master = on_host(MemoryCategory::optimizer, values.numel, DType::fp32);
  device_.run_on_host(Copy{values, master.tensor(DType::fp32)});
  return master;
}

// DeepSpeed makes a scratch tensor of the largest sub-group beside them, which it does not use. It
// makes those on the device as copies of others on the host.
void HostSubGroups::begin_gradients(bool pins) {
  std::int64_t largest = 0;
  for (const SubGroup& group : layout_.sub_groups()) largest = std::max(largest, group.numel);
  HostZeros scratch(device_, false);
  const Buffer unused = scratch.make(MemoryCategory::gradients, largest, DType::fp32);
  HostZeros zeros(device_, pins);
  Buffer last;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    zeros.make_in(last, MemoryCategory::gradients, layout_.sub_groups()[i].numel, DType::fp32);
    if (groups_[i].on_device) {
      groups_[i].on_device->begin_gradients(last.tensor(DType::fp32), tier_);
    } else {
      groups_[i].gradients = std::move(last);
    }
  }
}

Tensor HostSubGroups::part(Tensor of_group, std::size_t tensor) const {
  const SubGroup& group = layout_.sub_groups()[place_of_[tensor]];
  return of_group.slice(layout_.offset(tensor) - group.offset, layout_.shard(tensor));
}

void HostSubGroups::take(std::size_t tensor, Tensor gradient) const {
  const Group& group = group_of(tensor);
  send_gradient(device_, gradient, part(group.all_gradients(), tensor).slice(0, gradient.numel),
                group.on_device ? Tier::device : tier_);
}

void HostSubGroups::update(std::size_t index, const NextUpdate& next, double factor) {
  Group& group = groups_[index];
  const PlacedTensor parameters = shards_.of(layout_.sub_groups()[index]);
  if (group.on_device) return group.on_device->update(next, factor, parameters.tensor);
  const Tensor gradients = group.gradients.tensor(DType::fp32);
  const Tensor master = group.master.tensor(DType::fp32);
  device_.run_on_host(MemoryPass::unscale, Scale{gradients, factor});
  group.optimizer.update(device_, next, gradients, master);
  copy_weights(device_, {master, Tier::pageable}, parameters);
}

void HostSubGroups::read_master(std::size_t tensor, Tensor own) const {
  const Tensor master = part(group_of(tensor).all_masters(), tensor).slice(0, own.numel);
  if (group_of(tensor).on_device) return device_.run(Copy{master, own});
  device_.transfer(
      {master, own, Transfer::host_to_device, TransferPurpose::update, Tier::pageable, true});
}

void HostSubGroups::write_master(std::size_t tensor, Tensor own) const {
  const Tensor master = part(group_of(tensor).all_masters(), tensor).slice(0, own.numel);
  if (group_of(tensor).on_device) return device_.run(Copy{own, master});
  device_.transfer(
      {own, master, Transfer::device_to_host, TransferPurpose::update, Tier::pageable, true});
}

}  // namespace dstune
