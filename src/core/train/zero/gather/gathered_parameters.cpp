#include "core/train/zero/gather/gathered_parameters.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/dry/repeated_work.hpp"
#include "core/device/operations/elementwise.hpp"
#include "core/train/zero/layout/quantization_groups.hpp"

namespace dstune {

GatheredParameters::GatheredParameters(Device& device, Collectives& collectives,
                                       const ShardLayout& layout, Setup setup)
    : device_(device),
      collectives_(collectives),
      layout_(layout),
      setup_(setup),
      group_of_(layout.tensor_count(), groups_.end()),
      awaits_(layout.tensor_count(), false),
      storage_(layout.tensor_count()),
      full_(layout.tensor_count()),
      secondary_(layout.tensor_count()) {}

GatheredParameters::Source GatheredParameters::secondary() const {
  return {setup_.secondary, collectives_.size() / setup_.secondary->size()};
}

std::int64_t GatheredParameters::shard_numel(const Source& source, std::size_t tensor) const {
  return source.factor * layout_.shard(tensor);
}

PlacedTensor GatheredParameters::shard(const Source& source, std::size_t tensor) const {
  if (source.group == setup_.secondary) return {secondary_[tensor].tensor(setup_.dtype)};
  return shards_->shard(tensor);
}

void GatheredParameters::gather(const Tensors& tensors) {
  const StreamScope scope(device_, setup_.stream);
  Tensors with;
  Tensors without;
  for (const std::size_t tensor : tensors) {
    device_.host_event(HostEvent::gathered_tensor);
    (secondary_[tensor] ? with : without).push_back(tensor);
  }
  shards_->bring(without);
  if (!with.empty()) gather_from(secondary(), with);
  if (!without.empty()) gather_from(primary(), without);
}

void GatheredParameters::gather_from(const Source& source, const Tensors& tensors) {
  if (collectives_.size() == 1) {
    take_own(tensors);
  } else if (setup_.quantized) {
    gather_quantized(source, tensors);
  } else if (tensors.size() == 1) {
    gather_alone(source, tensors.front());
  } else if (setup_.method == GatherMethod::sequential) {
    const PipelinedCalls pipelined(*source.group);
    for (const std::size_t tensor : tensors) gather_alone(source, tensor);
  } else if (setup_.method == GatherMethod::coalesced) {
    gather_coalesced(source, tensors);
  } else if (setup_.method == GatherMethod::all_reduce && source.factor == 1 &&
             source.group != setup_.secondary) {
    gather_by_all_reduce(tensors);
  } else {
    gather_packed(source, tensors);
  }
}

void GatheredParameters::take_own(const Tensors& tensors) {
  add_group(primary(), tensors);
  for (const std::size_t tensor : tensors) {
    const PlacedTensor own = shard(primary(), tensor);
    full_[tensor] = own.tensor;
    if (!is_of_host(own.tier)) continue;
    storage_[tensor] = parameters(own.tensor.numel);
    full_[tensor] = storage_[tensor]->tensor(setup_.dtype);
    bring_shard(device_, own, full_[tensor], false);
  }
}

GatheredParameters::Group& GatheredParameters::add_group(const Source& source, Tensors tensors) {
  const auto group = groups_.insert(groups_.end(), Group{});
  for (const std::size_t tensor : tensors) {
    assert(group_of_[tensor] == groups_.end());
    group_of_[tensor] = group;
    awaits_[tensor] = true;
  }
  group->source = source;
  group->members = tensors.size();
  group->tensors = std::move(tensors);
  return *group;
}

void GatheredParameters::gather_coalesced(const Source& source, const Tensors& tensors) {
  CoalescedCalls one_launch(*source.group);
  for (const std::size_t tensor : tensors) gather_alone(source, tensor);
  const Event received = one_launch.end();
  for (const std::size_t tensor : tensors) group_of_[tensor]->received = received;
}

void GatheredParameters::gather_alone(const Source& source, std::size_t tensor) {
  const Tensor whole = make_whole(source, tensor);
  Buffer copy;
  launch(source, tensor, shard_on_device(device_, shard(source, tensor), copy), whole);
  copy.used_on(Stream::communication);
}

Tensor GatheredParameters::make_whole(const Source& source, std::size_t tensor) {
  storage_[tensor] = parameters(shard_numel(source, tensor) * source.group->size());
  const Tensor whole = storage_[tensor]->tensor(setup_.dtype);
  full_[tensor] = whole.slice(0, layout_.numel(tensor));
  return whole;
}

void GatheredParameters::launch(const Source& source, std::size_t tensor, Tensor own,
                                Tensor whole) {
  add_group(source, {tensor}).received = source.group->all_gather(own, whole, setup_.purpose);
}

void GatheredParameters::gather_packed(const Source& source, const Tensors& tensors) {
  Group& group = add_group(source, tensors);
  group.is_packed = true;
  for (const std::size_t tensor : tensors) group.stride += shard_numel(source, tensor);
  group.buffer = make_buffer(device_, MemoryCategory::temporaries,
                             group.stride * source.group->size(), setup_.dtype);
  const Tensor whole = group.buffer.tensor(setup_.dtype);
  const Tensor own = whole.slice(source.group->rank() * group.stride, group.stride);
  std::vector<Buffer> copies(tensors.size());
  std::vector<Tensor> shards;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    shards.push_back(shard_on_device(device_, shard(source, tensors[i]), copies[i]));
  }
  std::int64_t offset = 0;
  for (const Tensor& shard : shards) {
    device_.run(MemoryPass::gather_pack, Copy{shard, own.slice(offset, shard.numel)});
    offset += shard.numel;
  }
  group.received = source.group->all_gather(own, whole, setup_.purpose);
}

// Tensors lie as in DeepSpeed, at the sums of their unpadded sizes: the padding of a shard, which
// is zero, may reach into the next tensors, whose own part is written after it.
void GatheredParameters::gather_by_all_reduce(const Tensors& tensors) {
  Group& group = add_group(primary(), tensors);
  std::int64_t numel = 0;
  for (const std::size_t tensor : tensors) numel += layout_.shard(tensor) * collectives_.size();
  const std::shared_ptr<Buffer> buffer = parameters(numel);
  const Tensor whole = buffer->tensor(setup_.dtype);
  device_.run(MemoryPass::gather_pack, FillZero{whole});
  std::int64_t begin = 0;
  for (const std::size_t tensor : tensors) {
    const PlacedTensor own = shard(primary(), tensor);
    const Tensor place =
        whole.slice(begin + collectives_.rank() * own.tensor.numel, own.tensor.numel);
    if (is_of_host(own.tier)) {
      bring_shard(device_, own, place, true);
    } else {
      device_.run(MemoryPass::gather_pack, Copy{own.tensor, place});
    }
    storage_[tensor] = buffer;
    full_[tensor] = whole.slice(begin, layout_.numel(tensor));
    begin += layout_.numel(tensor);
  }
  group.received = collectives_.all_reduce(whole, ReduceOp::sum, Purpose::parameters);
}

// DeepSpeed cuts off the padding of a single tensor before it dequantises, which moves the groups.
void GatheredParameters::gather_quantized(const Source& source, const Tensors& tensors) {
  const std::int64_t numel = layout_.numel(tensors.front());
  const bool padded = numel != shard_numel(source, tensors.front()) * source.group->size();
  if (tensors.size() == 1 && padded) {
    throw QuantizationRefused(concat("zero_quantized_weights: a tensor of ", numel,
                                     " elements that is gathered alone must be divisible by ",
                                     collectives_.size(), " ranks"));
  }
  Group& group = add_group(source, tensors);
  group.is_packed = tensors.size() > 1;
  std::vector<Tensor> shards;
  for (const std::size_t tensor : tensors) {
    shards.push_back(shard(source, tensor).tensor);
    group.stride += shard_numel(source, tensor);
  }
  group.message = quantized(source).launch(shards);
  group.received = group.message->received;
}

// A buffer for parameters, which the computation reads on its own stream.
std::shared_ptr<Buffer> GatheredParameters::parameters(std::int64_t numel) const {
  auto buffer = std::make_shared<Buffer>(
      make_buffer(device_, MemoryCategory::parameters, numel, setup_.dtype));
  buffer->used_on(Stream::compute);
  return buffer;
}

void GatheredParameters::await(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) {
    if (!awaits_[tensor]) continue;
    awaits_[tensor] = false;
    Group& group = *group_of_[tensor];
    in_flight_limit_.wait(device_);
    if (!group.arrived) finish(group);
    in_flight_limit_.add(group.ready);
    device_.await(group.ready);
    leave_group(tensor);
  }
}

void GatheredParameters::finish(Group& group) {
  group.arrived = true;
  if (collectives_.size() == 1) {
    const bool is_copied = storage_[group.tensors.front()] != nullptr;
    if (!is_copied) return device_.host_sync(HostSync::parameters);
    return device_.host_sync(HostSync::parameters, device_.record(setup_.stream));
  }
  const StreamScope scope(device_, setup_.stream);
  device_.await(group.received);
  if (group.message) dequantize(group);
  if (group.is_packed) unpack(group);
  group.ready = device_.record(setup_.stream);
}

void GatheredParameters::dequantize(Group& group) {
  const QuantizedGather gather = quantized(group.source);
  if (group.is_packed) {
    group.buffer = gather.dequantized(*group.message, MemoryCategory::temporaries);
    return;
  }
  const std::size_t tensor = group.tensors.front();
  storage_[tensor] =
      std::make_shared<Buffer>(gather.dequantized(*group.message, MemoryCategory::parameters));
  storage_[tensor]->used_on(Stream::compute);
  full_[tensor] = storage_[tensor]->tensor(setup_.dtype).slice(0, layout_.numel(tensor));
}

void GatheredParameters::unpack(const Group& group) {
  const Tensor received = group.buffer.tensor(setup_.dtype);
  std::int64_t offset = 0;
  for (const std::size_t tensor : group.tensors) {
    const std::int64_t numel = layout_.numel(tensor);
    const std::int64_t shard = shard_numel(group.source, tensor);
    storage_[tensor] = parameters(numel);
    full_[tensor] = storage_[tensor]->tensor(setup_.dtype);
    const auto copy = [&](std::int64_t owner, std::int64_t count) {
      device_.run(MemoryPass::gather_unpack,
                  Copy{received.slice(offset + owner * group.stride, count),
                       full_[tensor].slice(owner * shard, count)});
    };
    const std::int64_t filled = numel / shard;  // shards without padding
    repeat(device_, filled, [&](std::int64_t owner) { copy(owner, shard); });
    if (filled * shard < numel) copy(filled, numel - filled * shard);
    offset += shard;
  }
}

void GatheredParameters::release(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) {
    assert(!awaits_[tensor]);
    if (setup_.secondary != nullptr && !secondary_[tensor]) keep_secondary(tensor);
    storage_[tensor].reset();
    full_[tensor] = {};
  }
  shards_->let_go(tensors);
}

// DeepSpeed waits for every single copy.
void GatheredParameters::keep_secondary(std::size_t tensor) {
  const Source source = secondary();
  const std::int64_t shard = shard_numel(source, tensor);
  const std::int64_t first = source.group->rank() * shard;
  const std::int64_t count = std::clamp<std::int64_t>(layout_.numel(tensor) - first, 0, shard);
  secondary_[tensor] = make_buffer(device_, MemoryCategory::parameters, shard, setup_.dtype);
  const Tensor whole = secondary_[tensor].tensor(setup_.dtype);
  const Tensor kept = whole.slice(0, count);
  // Undefined values in the padding would change the step of a quantisation group.
  if (setup_.quantized) device_.run(FillZero{whole.slice(count, shard - count)});
  if (count > 0) {
    device_.run(MemoryPass::partition_copy, Copy{full_[tensor].slice(first, count), kept});
  }
  device_.host_sync(HostSync::parameters);
}

void GatheredParameters::forget_secondary(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) secondary_[tensor].reset();
}

void GatheredParameters::leave_group(std::size_t tensor) {
  const auto group = std::exchange(group_of_[tensor], groups_.end());
  if (--group->members == 0) groups_.erase(group);
}

void GatheredParameters::gather_persistent(const Tensors& tensors) {
  if (tensors.empty()) return;
  shards_->bring(tensors);
  const Setup usual = setup_;
  setup_.purpose = Purpose::persistent;
  setup_.stream = Stream::compute;
  if (collectives_.size() == 1) {
    take_own(tensors);
    await(tensors);
  } else if (tensors.size() == 1 || setup_.method == GatherMethod::sequential) {
    gather_one_by_one(tensors);
  } else {
    gather_after_all_copies(tensors);
  }
  setup_ = usual;
}

// Only a shard's way to the device makes the host wait between them.
void GatheredParameters::gather_one_by_one(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) {
    gather_alone(primary(), tensor);
    await({tensor});
  }
  device_.host_sync(HostSync::parameters);
}

// DeepSpeed has all shards on the device before it gathers any, and keeps them until the end.
void GatheredParameters::gather_after_all_copies(const Tensors& tensors) {
  std::vector<Buffer> copies(tensors.size());
  std::vector<Tensor> shards;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    shards.push_back(shard_on_device(device_, shard(primary(), tensors[i]), copies[i]));
  }
  {
    const PipelinedCalls pipelined(collectives_);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      launch(primary(), tensors[i], shards[i], make_whole(primary(), tensors[i]));
      copies[i].used_on(Stream::communication);
    }
  }
  await(tensors);
  device_.host_sync(HostSync::parameters);
}

Tensor GatheredParameters::full(std::size_t tensor) const {
  assert(!awaits_.at(tensor) && full_[tensor].data != nullptr);
  return full_[tensor];
}

}  // namespace dstune
