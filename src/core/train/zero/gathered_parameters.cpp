#include "core/train/zero/gathered_parameters.hpp"

#include <cassert>

#include "core/train/zero/passes.hpp"

namespace dstune {

GatheredParameters::GatheredParameters(Device& device, Collectives& collectives,
                                       const ShardLayout& layout, const ModelParameters& parameters,
                                       DType dtype, Stream stream)
    : device_(device),
      collectives_(collectives),
      layout_(layout),
      parameters_(parameters),
      dtype_(dtype),
      stream_(stream),
      full_(parameters.tensors.size()),
      users_(parameters.tensors.size()) {}

void GatheredParameters::fetch(const std::vector<std::size_t>& tensors, Tensor shards) {
  std::vector<std::size_t> missing;
  for (const std::size_t tensor : tensors) {
    if (users_[tensor]++ == 0) missing.push_back(tensor);
  }
  if (missing.size() == 1) {
    gather_one(missing.front(), shards);
  } else if (!missing.empty()) {
    gather_together(missing, shards);
  }
}

void GatheredParameters::release(const std::vector<std::size_t>& tensors) {
  for (const std::size_t tensor : tensors) {
    assert(users_[tensor] > 0);
    if (--users_[tensor] == 0) full_[tensor].reset();
  }
}

Tensor GatheredParameters::full(std::size_t tensor) const {
  assert(full_.at(tensor));
  return full_[tensor].tensor(dtype_).slice(0, parameters_.tensors[tensor].numel());
}

void GatheredParameters::gather_one(std::size_t tensor, Tensor shards) {
  const std::int64_t shard = layout_.shard(tensor);
  full_[tensor] =
      make_buffer(device_, MemoryCategory::parameters, shard * collectives_.size(), dtype_);
  gather(shards.slice(layout_.offset(tensor), shard), full_[tensor].tensor(dtype_));
}

void GatheredParameters::gather_together(const std::vector<std::size_t>& tensors, Tensor shards) {
  std::int64_t stride = 0;
  for (const std::size_t tensor : tensors) stride += layout_.shard(tensor);
  const Buffer received =
      make_buffer(device_, MemoryCategory::temporaries, stride * collectives_.size(), dtype_);
  const Tensor whole = received.tensor(dtype_);
  const Tensor own = whole.slice(collectives_.rank() * stride, stride);
  std::int64_t offset = 0;
  for (const std::size_t tensor : tensors) {
    const std::int64_t shard = layout_.shard(tensor);
    Passes(device_).copy(Pass::gather_pack, shards.slice(layout_.offset(tensor), shard),
                         own.slice(offset, shard));
    offset += shard;
  }
  gather(own, whole);
  offset = 0;
  for (const std::size_t tensor : tensors) {
    unpack(tensor, whole, offset, stride);
    offset += layout_.shard(tensor);
  }
}

void GatheredParameters::gather(Tensor part, Tensor whole) {
  device_.wait(stream_, Stream::compute);
  collectives_.all_gather(part, whole, Purpose::parameters, stream_);
  device_.wait(Stream::compute, stream_);
}

void GatheredParameters::unpack(std::size_t tensor, Tensor received, std::int64_t offset,
                                std::int64_t stride) {
  full_[tensor] =
      make_buffer(device_, MemoryCategory::parameters, parameters_.tensors[tensor].numel(), dtype_);
  const std::int64_t shard = layout_.shard(tensor);
  for (int rank = 0; rank < collectives_.size(); ++rank) {
    const std::int64_t count = layout_.filled(tensor, rank);
    if (count == 0) break;
    Passes(device_).copy(Pass::gather_unpack, received.slice(rank * stride + offset, count),
                         full_[tensor].tensor(dtype_).slice(rank * shard, count));
  }
}

}  // namespace dstune
