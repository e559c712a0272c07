#include "core/train/zero/offload/host_parameter_shards.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/experiment/step_refused.hpp"
#include "core/train/zero/offload/host_zeros.hpp"

namespace dstune {

HostParameterShards::HostParameterShards(Device& device, const StepConfig& config,
                                         const std::vector<ParameterGroup>& groups,
                                         const ShardLayout& layout, int rank, const Fill& fill)
    : ParameterShards(device, layout),
      dtype_(config.dtype),
      tier_of_alone_(config.pin_offloaded_parameters ? Tier::pinned : Tier::pageable),
      alone_(layout.tensor_count()),
      flat_of_(layout.tensor_count()) {
  if (config.swaps_parameters()) {
    swapper_ = std::make_unique<ParameterSwapper>(device, config, layout);
  }
  for (std::size_t tensor = 0; tensor < layout.tensor_count(); ++tensor) {
    make(tensor, config.pin_offloaded_parameters, rank, fill);
  }
  make_flats(groups,
             swapper_ ? config.max_parameters_in_cpu : std::numeric_limits<std::int64_t>::max());
  move_into_flats();
}

// DeepSpeed cuts each tensor of the model, which is on the device, as soon as it is made.
void HostParameterShards::make(std::size_t tensor, bool pins, int rank, const Fill& fill) {
  const std::int64_t count = layout().filled(tensor, rank);
  const auto fill_shard = [&](const PlacedTensor& shard) {
    if (count == 0) return;
    const Buffer made = make_buffer(device(), MemoryCategory::temporaries, count, dtype_);
    fill(tensor, made.tensor(dtype_));
    copy_weights(device(), {made.tensor(dtype_)}, shard.slice(0, count));
  };
  if (swapper_ && swapper_->takes(tensor)) return swapper_->begin(tensor, fill_shard);
  HostZeros zeros(device(), pins);
  alone_[tensor] = zeros.make_only(MemoryCategory::parameters, layout().shard(tensor), dtype_);
  fill_shard(shard(tensor));
}

// All groups get their tensors before any shard moves. A group that gets none has one element.
void HostParameterShards::make_flats(const std::vector<ParameterGroup>& groups, std::int64_t most) {
  HostZeros zeros(device(), true);
  for (const ParameterGroup& group : groups) {
    std::int64_t numel = 0;
    for (const std::size_t tensor : group.tensors) {
      numel += layout().shard(tensor);
      flat_of_[tensor] = flats_.size();
    }
    Flat& flat = flats_.emplace_back();
    flat.begin = layout().offset(group.tensors.front());
    flat.numel = std::clamp<std::int64_t>(most, 0, numel);
    most -= numel;
    flat.buffer = flat.numel > 0 ? zeros.make_only(MemoryCategory::parameters, flat.numel, dtype_)
                                 : make_buffer(device(), MemoryCategory::parameters, 1, dtype_,
                                               Tier::pageable);
  }
}

void HostParameterShards::move_into_flats() {
  const SubGroup* largest = nullptr;
  bool are_all_there = true;
  for (const SubGroup& group : layout().sub_groups()) {
    if (largest == nullptr || group.numel > largest->numel) largest = &group;
    if (of(group)) {
      for (const std::size_t tensor : group.tensors) move(tensor);
    } else {
      are_all_there = false;
    }
  }
  if (swapper_ && !are_all_there) swapper_->make_write_back(*largest);
}

void HostParameterShards::move(std::size_t tensor) {
  const PlacedTensor place = in_flat(tensor, layout().offset(tensor), layout().shard(tensor));
  if (is_swapped(tensor)) return swapper_->move_to(tensor, place);
  const Buffer left = std::exchange(alone_[tensor], {});
  device().run_on_host(Copy{left.tensor(dtype_), place.tensor});
}

PlacedTensor HostParameterShards::in_flat(std::size_t tensor, std::int64_t offset,
                                          std::int64_t count) const {
  const Flat& flat = flats_[flat_of_[tensor]];
  return {flat.buffer.tensor(dtype_).slice(offset - flat.begin, count), Tier::pinned};
}

PlacedTensor HostParameterShards::shard(std::size_t tensor) const {
  if (is_swapped(tensor)) return swapper_->shard(tensor);
  if (alone_[tensor]) return {alone_[tensor].tensor(dtype_), tier_of_alone_};
  return in_flat(tensor, layout().offset(tensor), layout().shard(tensor));
}

std::optional<PlacedTensor> HostParameterShards::of(const SubGroup& group) const {
  const std::size_t first = group.tensors.front();
  const Flat& flat = flats_[flat_of_[first]];
  if (group.offset - flat.begin + group.numel > flat.numel) return std::nullopt;
  return in_flat(first, group.offset, group.numel);
}

void HostParameterShards::bring(const Tensors& tensors) {
  if (swapper_) swapper_->bring(tensors);
}

void HostParameterShards::read_ahead(const Tensors& tensors) {
  if (swapper_) swapper_->read_ahead(tensors);
}

void HostParameterShards::let_go(const Tensors& tensors) {
  if (swapper_) swapper_->let_go(tensors);
}

PlacedTensor HostParameterShards::part(const PlacedTensor& of_group, const SubGroup& group,
                                       std::size_t tensor) const {
  return of_group.slice(layout().offset(tensor) - group.offset, layout().shard(tensor));
}

// One by one, which needs one buffer.
void HostParameterShards::read(const SubGroup& group, const PlacedTensor& to) {
  if (of(group)) return ParameterShards::read(group, to);
  for (const std::size_t tensor : group.tensors) {
    bring({tensor});
    copy_weights(device(), shard(tensor), part(to, group, tensor));
    let_go({tensor});
  }
}

// What is in a buffer of the drive gets its new values there, and loses them with the buffer, as in
// DeepSpeed; by the time of the update none is.
void HostParameterShards::write(const SubGroup& group, const PlacedTensor& from) {
  if (of(group)) return ParameterShards::write(group, from);
  std::vector<ParameterSwapper::NewValues> for_drive;
  for (const std::size_t tensor : group.tensors) {
    const PlacedTensor values = part(from, group, tensor);
    if (is_swapped(tensor) && !swapper_->is_in_buffer(tensor)) {
      for_drive.push_back({tensor, values});
    } else {
      copy_weights(device(), values, shard(tensor));
    }
  }
  if (!for_drive.empty()) swapper_->write_back(for_drive);
}

std::vector<PlacedTensor> HostParameterShards::bring_whole(std::span<const SubGroup> groups) {
  std::vector<std::int64_t> numels;
  for (const SubGroup& group : groups) numels.push_back(group.numel);
  const std::vector<Tensor> room = swapper_->room_for(numels);
  if (room.empty()) {
    throw StepRefused(
        "zero_optimization.offload_optimizer.fast_init without a buffer of offload_param that is "
        "free and holds a sub-group: DeepSpeed stops with an error");
  }
  std::vector<PlacedTensor> found;
  std::vector<std::pair<std::size_t, Tensor>> from_drive;
  for (std::size_t i = 0; i < room.size(); ++i) {
    found.push_back({room[i], Tier::locked});
    for (const std::size_t tensor : groups[i].tensors) {
      const PlacedTensor place = part(found.back(), groups[i], tensor);
      if (is_swapped(tensor)) {
        from_drive.emplace_back(tensor, place.tensor);
      } else {
        copy_weights(device(), shard(tensor), place);
      }
    }
  }
  swapper_->read_to(from_drive);
  return found;
}

void HostParameterShards::with_shard(std::size_t tensor,
                                     const std::function<void(PlacedTensor)>& use) {
  if (is_swapped(tensor)) return swapper_->with_shard(tensor, use);
  use(shard(tensor));
}

}  // namespace dstune
