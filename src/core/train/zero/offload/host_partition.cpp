#include "core/train/zero/offload/host_partition.hpp"

#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/offload/host_zeros.hpp"

namespace dstune {

// In the order of DeepSpeed's constructor, on which the peak hangs.
HostPartition::HostPartition(Device& device, const StepConfig& config, const FlatLayouts& layouts,
                             int rank, std::int64_t largest)
    : device_(device), layouts_(layouts), dtype_(config.dtype), groups_(layouts.size()) {
  HostZeros stagings(device, config.pin_offloaded_optimizer);
  tier_ = stagings.tier();
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    const std::int64_t count = layouts[i].partition();
    group.ranges = layouts[i].owned_by(rank);
    group.master = stagings.make_only(MemoryCategory::optimizer, count, DType::fp32);
    group.staging = stagings.make(MemoryCategory::parameters, count, dtype_);
  }
  unused_ = stagings.make_only(MemoryCategory::temporaries, largest, dtype_);
  HostZeros gradients(device, config.pin_offloaded_optimizer);
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    groups_[i].gradients =
        gradients.make(MemoryCategory::gradients, layouts[i].partition(), DType::fp32);
  }
}

void HostPartition::initialize_master(std::size_t group, Tensor own) {
  const Tensor arrived = staging(group);
  device_.transfer({own, arrived, Transfer::device_to_host, TransferPurpose::update, tier_, true});
  device_.run_on_host(Cast{arrived, groups_[group].master.tensor(DType::fp32)});
}

void HostPartition::update(std::size_t index, const NextUpdate& next, std::optional<double> factor,
                           Tensor own) {
  Group& group = groups_[index];
  const Tensor master = group.master.tensor(DType::fp32);
  if (factor) device_.run_on_host(MemoryPass::unscale, Scale{gradients(index), *factor});
  group.optimizer.update(device_, next, gradients(index), master);
  device_.run_on_host(MemoryPass::master_cast, Cast{master, staging(index)});
  device_.transfer({staging(index), own, Transfer::host_to_device, TransferPurpose::update, tier_});
}

void HostPartition::read_own(std::size_t tensor, Tensor all) const {
  const Group& group = groups_[layouts_.group_of(tensor)];
  for (const OwnedRange& range : group.ranges) {
    if (range.tensor != tensor) continue;
    device_.transfer({group.master.tensor(DType::fp32).slice(range.partition_offset, range.numel),
                      all.slice(range.tensor_offset, range.numel), Transfer::host_to_device,
                      TransferPurpose::update, tier_, true});
  }
}

void HostPartition::write_own(std::size_t tensor, Tensor all) const {
  const Group& group = groups_[layouts_.group_of(tensor)];
  for (const OwnedRange& range : group.ranges) {
    if (range.tensor != tensor) continue;
    device_.transfer({all.slice(range.tensor_offset, range.numel),
                      group.master.tensor(DType::fp32).slice(range.partition_offset, range.numel),
                      Transfer::device_to_host, TransferPurpose::update, tier_, true});
  }
}

}  // namespace dstune
