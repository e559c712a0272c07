#include "core/train/zero/gathered_parameters.hpp"

#include <cassert>
#include <utility>

#include "core/base/text.hpp"
#include "core/train/quantization_groups.hpp"
#include "core/train/zero/passes.hpp"

namespace dstune {

GatheredParameters::GatheredParameters(Device& device, Collectives& collectives,
                                       const ShardLayout& layout, Setup setup)
    : device_(device),
      collectives_(collectives),
      layout_(layout),
      setup_(setup),
      quantized_(device, collectives, setup.dtype, setup.stream),
      group_of_(layout.tensor_count(), groups_.end()),
      awaits_(layout.tensor_count(), false),
      storage_(layout.tensor_count()),
      full_(layout.tensor_count()) {}

Tensor GatheredParameters::shard(std::size_t tensor) const {
  return shards_.slice(layout_.offset(tensor), layout_.shard(tensor));
}

void GatheredParameters::gather(const Tensors& tensors) {
  if (tensors.empty()) return;
  if (collectives_.size() == 1) {
    add_group(tensors);
    for (const std::size_t tensor : tensors) full_[tensor] = shard(tensor);
  } else if (setup_.quantized) {
    gather_quantized(tensors);
  } else if (tensors.size() == 1) {
    gather_alone(tensors.front());
  } else if (setup_.method == GatherMethod::packed) {
    gather_packed(tensors);
  } else if (setup_.method == GatherMethod::all_reduce) {
    gather_by_all_reduce(tensors);
  } else {
    for (const std::size_t tensor : tensors) gather_alone(tensor);
  }
}

GatheredParameters::Group& GatheredParameters::add_group(Tensors tensors) {
  const auto group = groups_.insert(groups_.end(), Group{});
  for (const std::size_t tensor : tensors) {
    assert(group_of_[tensor] == groups_.end());
    group_of_[tensor] = group;
    awaits_[tensor] = true;
  }
  group->members = tensors.size();
  group->tensors = std::move(tensors);
  return *group;
}

void GatheredParameters::gather_alone(std::size_t tensor) {
  const std::int64_t numel = layout_.shard(tensor) * collectives_.size();
  storage_[tensor] = make_buffer(device_, MemoryCategory::parameters, numel, setup_.dtype);
  const Tensor whole = storage_[tensor].tensor(setup_.dtype);
  full_[tensor] = whole.slice(0, layout_.numel(tensor));
  add_group({tensor});
  start_all_gather(shard(tensor), whole);
}

void GatheredParameters::gather_packed(const Tensors& tensors) {
  Group& group = add_group(tensors);
  group.is_packed = true;
  for (const std::size_t tensor : tensors) group.stride += layout_.shard(tensor);
  group.buffer = make_buffer(device_, MemoryCategory::temporaries,
                             group.stride * collectives_.size(), setup_.dtype);
  const Tensor whole = group.buffer.tensor(setup_.dtype);
  const Tensor own = whole.slice(collectives_.rank() * group.stride, group.stride);
  std::int64_t offset = 0;
  for (const std::size_t tensor : tensors) {
    Passes(device_).copy(Pass::gather_pack, shard(tensor),
                         own.slice(offset, layout_.shard(tensor)));
    offset += layout_.shard(tensor);
  }
  start_all_gather(own, whole);
}

// As in DeepSpeed tensors lie at the sums of their unpadded sizes: the padding of a shard, which is
// zero, may reach into the next tensors, whose own part is written after it.
void GatheredParameters::gather_by_all_reduce(const Tensors& tensors) {
  Group& group = add_group(tensors);
  group.holds_tensors = true;
  std::int64_t numel = 0;
  for (const std::size_t tensor : tensors) numel += layout_.shard(tensor) * collectives_.size();
  group.buffer = make_buffer(device_, MemoryCategory::parameters, numel, setup_.dtype);
  const Tensor whole = group.buffer.tensor(setup_.dtype);
  Passes(device_).fill_zero(Pass::gather_pack, whole);
  std::int64_t begin = 0;
  for (const std::size_t tensor : tensors) {
    const std::int64_t own = begin + collectives_.rank() * layout_.shard(tensor);
    Passes(device_).copy(Pass::gather_pack, shard(tensor), whole.slice(own, layout_.shard(tensor)));
    full_[tensor] = whole.slice(begin, layout_.numel(tensor));
    begin += layout_.numel(tensor);
  }
  device_.wait(setup_.stream, Stream::compute);
  collectives_.all_reduce(whole, ReduceOp::sum, Purpose::parameters, setup_.stream);
}

// DeepSpeed cuts the padding of a single tensor off before it dequantises, which moves the groups.
void GatheredParameters::gather_quantized(const Tensors& tensors) {
  const std::int64_t numel = layout_.numel(tensors.front());
  if (tensors.size() == 1 && numel % collectives_.size() != 0) {
    throw QuantizationRefused(concat("zero_quantized_weights: a tensor of ", numel,
                                     " elements that is gathered alone must be divisible by ",
                                     collectives_.size(), " ranks"));
  }
  Group& group = add_group(tensors);
  group.is_packed = tensors.size() > 1;
  std::vector<Tensor> shards;
  for (const std::size_t tensor : tensors) {
    shards.push_back(shard(tensor));
    group.stride += layout_.shard(tensor);
  }
  group.message = quantized_.launch(shards);
}

void GatheredParameters::start_all_gather(Tensor part, Tensor whole) {
  device_.wait(setup_.stream, Stream::compute);
  collectives_.all_gather(part, whole, Purpose::parameters, setup_.stream);
}

void GatheredParameters::await(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) {
    if (!awaits_[tensor]) continue;
    awaits_[tensor] = false;
    Group& group = *group_of_[tensor];
    if (!group.arrived) finish(group);
    if (!group.holds_tensors) leave_group(tensor);
  }
}

void GatheredParameters::finish(Group& group) {
  group.arrived = true;
  if (collectives_.size() == 1) {
    device_.host_sync(HostSync::parameters);
    return;
  }
  device_.wait(Stream::compute, setup_.stream);
  if (group.message) dequantize(group);
  if (group.is_packed) unpack(group);
}

void GatheredParameters::dequantize(Group& group) {
  if (group.is_packed) {
    group.buffer = quantized_.wait(*group.message, MemoryCategory::temporaries);
    return;
  }
  const std::size_t tensor = group.tensors.front();
  storage_[tensor] = quantized_.wait(*group.message, MemoryCategory::parameters);
  full_[tensor] = storage_[tensor].tensor(setup_.dtype).slice(0, layout_.numel(tensor));
}

void GatheredParameters::unpack(const Group& group) {
  const Tensor received = group.buffer.tensor(setup_.dtype);
  std::int64_t offset = 0;
  for (const std::size_t tensor : group.tensors) {
    storage_[tensor] =
        make_buffer(device_, MemoryCategory::parameters, layout_.numel(tensor), setup_.dtype);
    full_[tensor] = storage_[tensor].tensor(setup_.dtype);
    for (int rank = 0; rank < collectives_.size(); ++rank) {
      const std::int64_t count = layout_.filled(tensor, rank);
      if (count == 0) break;
      Passes(device_).copy(Pass::gather_unpack, received.slice(rank * group.stride + offset, count),
                           full_[tensor].slice(rank * layout_.shard(tensor), count));
    }
    offset += layout_.shard(tensor);
  }
}

void GatheredParameters::release(const Tensors& tensors) {
  for (const std::size_t tensor : tensors) {
    assert(!awaits_[tensor]);
    storage_[tensor].reset();
    full_[tensor] = {};
    if (group_of_[tensor] != groups_.end()) leave_group(tensor);
  }
}

void GatheredParameters::leave_group(std::size_t tensor) {
  const auto group = std::exchange(group_of_[tensor], groups_.end());
  if (--group->members == 0) groups_.erase(group);
}

void GatheredParameters::gather_persistent(const Tensors& tensors) {
  if (tensors.empty()) return;
  if (collectives_.size() == 1 || tensors.size() > 1) {
    const GatherMethod method = std::exchange(setup_.method, GatherMethod::sequential);
    const Stream stream = std::exchange(setup_.stream, Stream::compute);
    const bool quantized = std::exchange(setup_.quantized, false);
    gather(tensors);
    await(tensors);
    if (collectives_.size() > 1) device_.host_sync(HostSync::parameters);
    setup_.method = method;
    setup_.stream = stream;
    setup_.quantized = quantized;
  } else {  // DeepSpeed packs and unpacks a single one, and does not wait
    gather_packed(tensors);
    await(tensors);
  }
}

Tensor GatheredParameters::full(std::size_t tensor) const {
  assert(!awaits_.at(tensor) && full_[tensor].data != nullptr);
  return full_[tensor];
}

}  // namespace dstune
