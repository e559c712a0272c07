#include "core/train/zero/offload/host_sub_groups.hpp"

#include <algorithm>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/experiment/step_refused.hpp"
#include "core/train/zero/offload/host_zeros.hpp"
#include "core/train/zero/offload/send_gradient.hpp"

namespace dstune {

HostSubGroups::HostSubGroups(Device& device, const StepConfig& config, const ShardLayout& layout,
                             ParameterShards& shards, int rank)
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
  if (config.swaps_optimizer()) {
    swapper_ = std::make_unique<OptimizerSwapper>(device, config, layout, rank);
  }
  begin_masters(config);
  begin_gradients(config.pin_offloaded_optimizer);
}

void HostSubGroups::begin_masters(const StepConfig& config) {
  const std::size_t on_device = config.sub_groups_on_device(groups_.size());
  Buffer converted;
  Buffer scratch;  // a variable that keeps a master until the next one is there
  OptimizerSwapper::Groups in_memory;
  OptimizerSwapper::Groups fast;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const SubGroup& group = layout_.sub_groups()[i];
    const std::optional<PlacedTensor> parameters = shards_.of(group);
    if (is_swapped(i) && parameters) {
      in_memory.push_back(i);
    } else if (is_swapped(i) && config.fast_init) {
      fast.push_back(i);
    } else if (is_swapped(i)) {
      scratch = gather_master(group);
      const PlacedTensor master{scratch.tensor(DType::fp32), Tier::pageable};
      swapper_->begin_masters({i}, [&](std::size_t) { return master; });
    } else if (!parameters) {
      groups_[i].master = gather_master(group);
      scratch = {};
    } else if (i < on_device) {
      groups_[i].on_device = std::make_unique<DeviceSubGroup>(device_, config, *parameters);
    } else {
      groups_[i].master = begin_master(*parameters, converted);
    }
  }
  if (!in_memory.empty()) {
    swapper_->begin_masters(
        in_memory, [&](std::size_t i) { return shards_.of(layout_.sub_groups()[i]).value(); });
  }
  if (!fast.empty()) begin_masters_fast(config, fast);
}

Buffer HostSubGroups::gather_master(const SubGroup& group) {
  Buffer master = on_host(MemoryCategory::optimizer, group.numel, DType::fp32);
  shards_.read(group, {master.tensor(DType::fp32), Tier::pageable});
  return master;
}

void HostSubGroups::begin_masters_fast(const StepConfig& config,
                                       const OptimizerSwapper::Groups& groups) {
  if (auto reason = unsupported_fast_init(config, layout_)) throw StepRefused(*reason);
  swapper_->begin_masters_in_turns(groups, [&](const OptimizerSwapper::Groups& left) {
    std::vector<SubGroup> sub_groups;
    for (const std::size_t group : left) sub_groups.push_back(layout_.sub_groups()[group]);
    return shards_.bring_whole(sub_groups);
  });
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
// makes those on the device as copies of others on the host, and writes parameters to their drive
// once more.
void HostSubGroups::begin_gradients(bool pins) {
  HostZeros scratch(device_, false);
  const Buffer unused =
      scratch.make(MemoryCategory::gradients, layout_.largest_sub_group(), DType::fp32);
  HostZeros zeros(device_, pins);
  Buffer last;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const SubGroup& group = layout_.sub_groups()[i];
    const auto write_to_drive = [&](const PlacedTensor& master) {
      if (!shards_.of(group)) shards_.write(group, master);
    };
    if (is_swapped(i)) {
      swapper_->begin_state(i, write_to_drive);
      continue;
    }
    zeros.make_in(last, MemoryCategory::gradients, group.numel, DType::fp32);
    if (groups_[i].on_device) {
      groups_[i].on_device->begin_gradients(last.tensor(DType::fp32), tier_);
    } else {
      groups_[i].gradients = std::move(last);
      write_to_drive({groups_[i].master.tensor(DType::fp32), Tier::pageable});
    }
  }
}

Tensor HostSubGroups::part(Tensor of_group, std::size_t tensor) const {
  const SubGroup& group = layout_.sub_groups()[place_of_[tensor]];
  return of_group.slice(layout_.offset(tensor) - group.offset, layout_.shard(tensor));
}

void HostSubGroups::take(std::size_t tensor, Tensor gradient,
                         const std::shared_ptr<const Buffer>& memory) {
  if (is_swapped(place_of_[tensor])) return take_for_drive(tensor, gradient, memory);
  const Group& group = group_of(tensor);
  send_gradient(device_, gradient, part(group.all_gradients(), tensor).slice(0, gradient.numel),
                group.on_device ? Tier::device : tier_);
}

// DeepSpeed's to() makes nothing new of what is fp32.
void HostSubGroups::take_for_drive(std::size_t tensor, Tensor gradient,
                                   std::shared_ptr<const Buffer> memory) {
  if (gradient.dtype != DType::fp32) {
    auto single = std::make_shared<const Buffer>(
        make_buffer(device_, MemoryCategory::temporaries, gradient.numel, DType::fp32));
    device_.run(MemoryPass::master_gradient, Cast{gradient, single->tensor(DType::fp32)});
    gradient = single->tensor(DType::fp32);
    memory = std::move(single);
  }
  const std::size_t place = place_of_[tensor];
  auto found = std::find_if(for_drive_.begin(), for_drive_.end(),
                            [&](const auto& group) { return group.first == place; });
  if (found == for_drive_.end()) found = for_drive_.insert(for_drive_.end(), {place, {}});
  found->second.push_back(
      {layout_.offset(tensor) - layout_.sub_groups()[place].offset, gradient, std::move(memory)});
}

void HostSubGroups::end_flush() {
  for (const auto& [group, gradients] : for_drive_) swapper_->take(group, gradients);
  for_drive_.clear();
}

void HostSubGroups::update(std::size_t index, const NextUpdate& next, double factor) {
  Group& group = groups_[index];
  const SubGroup& members = layout_.sub_groups()[index];
  if (is_swapped(index)) {
    return swapper_->update(index, next, factor,
                            [&](const PlacedTensor& master) { shards_.write(members, master); });
  }
  if (group.on_device) {
    return group.on_device->update(next, factor, shards_.of(members).value());
  }
  const Tensor gradients = group.gradients.tensor(DType::fp32);
  const Tensor master = group.master.tensor(DType::fp32);
  device_.run_on_host(MemoryPass::unscale, Scale{gradients, factor});
  group.optimizer.update(device_, next, gradients, master);
  shards_.write(members, {master, Tier::pageable});
}

void HostSubGroups::read_master(std::size_t tensor, Tensor own) const {
  with_master(tensor, own.numel, [&](const PlacedTensor& master) {
    if (!is_of_host(master.tier)) return device_.run(Copy{master.tensor, own});
    device_.transfer(
        {master.tensor, own, Transfer::host_to_device, TransferPurpose::update, master.tier, true});
  });
}

void HostSubGroups::write_master(std::size_t tensor, Tensor own) const {
  with_master(tensor, own.numel, [&](const PlacedTensor& master) {
    if (!is_of_host(master.tier)) return device_.run(Copy{own, master.tensor});
    device_.transfer(
        {own, master.tensor, Transfer::device_to_host, TransferPurpose::update, master.tier, true});
  });
}

void HostSubGroups::with_master(std::size_t tensor, std::int64_t count,
                                const std::function<void(const PlacedTensor&)>& use) const {
  const std::size_t place = place_of_[tensor];
  const auto use_part = [&](Tensor of_group, Tier tier) {
    use({part(of_group, tensor).slice(0, count), tier});
  };
  if (is_swapped(place)) {
    return swapper_->with_master(place, [&](Tensor all) { use_part(all, Tier::locked); });
  }
  use_part(groups_[place].all_masters(), groups_[place].on_device ? Tier::device : Tier::pageable);
}

}  // namespace dstune
