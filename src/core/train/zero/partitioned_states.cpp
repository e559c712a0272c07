#include "core/train/zero/partitioned_states.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"

namespace dstune {

PartitionedStates::PartitionedStates(Device& device, Collectives& collectives, DType dtype,
                                     FrozenParameters frozen, const FlatLayouts& layouts,
                                     Master master)
    : device_(device),
      collectives_(collectives),
      dtype_(dtype),
      frozen_(std::move(frozen)),
      layouts_(layouts),
      groups_(layouts.size()) {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    const FlatLayout& layout = layouts[group];
    Group& state = groups_[group];
    state.flat = make_buffer(device, MemoryCategory::parameters, layout.padded(), dtype);
    const std::int64_t padding = layout.padded() - layout.numel();
    if (padding > 0) device.run(FillZero{state.flat.tensor(dtype).slice(layout.numel(), padding)});
    if (master == Master::here) {
      state.master =
          make_buffer(device, MemoryCategory::optimizer, layout.partition(), DType::fp32);
    }
    state.ranges = layout.owned_by(collectives.rank());
  }
}

Tensor PartitionedStates::parameter(std::size_t tensor) const {
  if (frozen_.has(tensor)) return frozen_.parameter(tensor);
  const FlatLayout& layout = layouts_.of(tensor);
  return groups_[layouts_.group_of(tensor)].flat.tensor(dtype_).slice(layout.offset(tensor),
                                                                      layout.numel(tensor));
}

Tensor PartitionedStates::own_partition(std::size_t group) const {
  const std::int64_t count = layouts_[group].partition();
  return groups_[group].flat.tensor(dtype_).slice(collectives_.rank() * count, count);
}

void PartitionedStates::initialize_master() {
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    device_.run(Cast{own_partition(group), groups_[group].master.tensor(DType::fp32)});
  }
}

void PartitionedStates::update(std::size_t group, const NextUpdate& next, Tensor gradients) {
  Group& state = groups_[group];
  const Tensor master = state.master.tensor(DType::fp32);
  state.optimizer.update(device_, next, gradients, master);
  device_.run(MemoryPass::master_cast, Cast{master, own_partition(group)});
}

void PartitionedStates::gather() {
  if (collectives_.size() == 1) return;
  const PhaseScope phase(device_.memory(), StepPhase::parameters);
  for (std::size_t group = 0; group < groups_.size(); ++group) {
    device_.await(collectives_.all_gather(own_partition(group), groups_[group].flat.tensor(dtype_),
                                          Purpose::parameters));
  }
}

void PartitionedStates::read_own(std::size_t tensor, Tensor all) {
  const Group& state = groups_[layouts_.group_of(tensor)];
  for (const OwnedRange& range : state.ranges) {
    if (range.tensor != tensor) continue;
    device_.run(Copy{state.master.tensor(DType::fp32).slice(range.partition_offset, range.numel),
                     all.slice(range.tensor_offset, range.numel)});
  }
}

void PartitionedStates::write(std::size_t tensor, std::span<const float> values) {
  device_.write(values, parameter(tensor));
  if (frozen_.has(tensor)) return;
  const Group& state = groups_[layouts_.group_of(tensor)];
  for (const OwnedRange& range : state.ranges) {
    if (range.tensor != tensor) continue;
    device_.write(values.subspan(static_cast<std::size_t>(range.tensor_offset),
                                 static_cast<std::size_t>(range.numel)),
                  state.master.tensor(DType::fp32).slice(range.partition_offset, range.numel));
  }
}

}  // namespace dstune
