#include "core/train/zero/offload/host_sub_groups.hpp"

#include <algorithm>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/offload/host_zeros.hpp"

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
  begin_masters();
  begin_gradients(config.pin_offloaded_optimizer);
}

// DeepSpeed clones what to() gives it, and a variable keeps that until the next one is there: what
// it has converted, or nothing new where the values are on the host in fp32.
void HostSubGroups::begin_masters() {
  Buffer converted;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const SubGroup& group = layout_.sub_groups()[i];
    const PlacedTensor parameters = shards_.of(group);
    Buffer next;
    Tensor values = parameters.tensor;
    if (!is_of_host(parameters.tier) || dtype_ != DType::fp32) {
      next = on_host(MemoryCategory::optimizer, group.numel, DType::fp32);
      values = next.tensor(DType::fp32);
      copy_weights(device_, parameters, {values, Tier::pageable});
    }
    converted = std::move(next);
    groups_[i].master = on_host(MemoryCategory::optimizer, group.numel, DType::fp32);
    device_.run_on_host(Copy{values, groups_[i].master.tensor(DType::fp32)});
  }
}

// DeepSpeed makes a scratch tensor of the largest sub-group beside them, which it does not use.
void HostSubGroups::begin_gradients(bool pins) {
  std::int64_t largest = 0;
  for (const SubGroup& group : layout_.sub_groups()) largest = std::max(largest, group.numel);
  HostZeros scratch(device_, false);
  const Buffer unused = scratch.make(MemoryCategory::gradients, largest, DType::fp32);
  HostZeros zeros(device_, pins);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].gradients =
        zeros.make_only(MemoryCategory::gradients, layout_.sub_groups()[i].numel, DType::fp32);
  }
}

Tensor HostSubGroups::part(const Buffer& buffer, std::size_t tensor) const {
  const SubGroup& group = layout_.sub_groups()[place_of_[tensor]];
  return buffer.tensor(DType::fp32)
      .slice(layout_.offset(tensor) - group.offset, layout_.shard(tensor));
}

Tensor HostSubGroups::gradient(std::size_t tensor) const {
  return part(group_of(tensor).gradients, tensor);
}

void HostSubGroups::update(std::size_t index, const NextUpdate& next, double factor) {
  Group& group = groups_[index];
  const Tensor gradients = group.gradients.tensor(DType::fp32);
  const Tensor master = group.master.tensor(DType::fp32);
  device_.run_on_host(MemoryPass::unscale, Scale{gradients, factor});
  group.optimizer.update(device_, next, gradients, master);
  copy_weights(device_, {master, Tier::pageable}, shards_.of(layout_.sub_groups()[index]));
}

void HostSubGroups::read_master(std::size_t tensor, Tensor own) const {
  device_.transfer({part(group_of(tensor).master, tensor).slice(0, own.numel), own,
                    Transfer::host_to_device, TransferPurpose::update, Tier::pageable, true});
}

void HostSubGroups::write_master(std::size_t tensor, Tensor own) const {
  device_.transfer({own, part(group_of(tensor).master, tensor).slice(0, own.numel),
                    Transfer::device_to_host, TransferPurpose::update, Tier::pageable, true});
}

}  // namespace dstune
