#include "core/train/zero/gather/parameter_shards.hpp"

#include "core/device/operations/elementwise.hpp"

namespace dstune {

void bring_shard(Device& device, const PlacedTensor& shard, Tensor to, bool is_blocking) {
  device.transfer({shard.tensor, to, Transfer::host_to_device, TransferPurpose::parameter,
                   shard.tier, is_blocking});
}

Tensor shard_on_device(Device& device, const PlacedTensor& shard, Buffer& copy) {
  if (!is_of_host(shard.tier)) return shard.tensor;
  const DType dtype = shard.tensor.dtype;
  copy = make_buffer(device, MemoryCategory::temporaries, shard.tensor.numel, dtype);
  bring_shard(device, shard, copy.tensor(dtype), true);
  return copy.tensor(dtype);
}

void ParameterShards::read(const SubGroup& group, const PlacedTensor& to) {
  copy_weights(device_, of(group).value(), to);
}

void ParameterShards::write(const SubGroup& group, const PlacedTensor& from) {
  copy_weights(device_, from, of(group).value());
}

std::vector<PlacedTensor> ParameterShards::bring_whole(std::span<const SubGroup> groups) {
  std::vector<PlacedTensor> found;
  for (const SubGroup& group : groups) found.push_back(of(group).value());
  return found;
}

DeviceParameterShards::DeviceParameterShards(Device& device, const ShardLayout& layout, int rank,
                                             DType dtype, const Fill& fill)
    : ParameterShards(device, layout),
      dtype_(dtype),
      buffer_(make_buffer(device, MemoryCategory::parameters, layout.held(), dtype)) {
  device.run(FillZero{buffer_.tensor(dtype)});
  for (std::size_t tensor = 0; tensor < layout.tensor_count(); ++tensor) {
    const std::int64_t count = layout.filled(tensor, rank);
    if (count > 0) fill(tensor, shard(tensor).tensor.slice(0, count));
  }
}

PlacedTensor DeviceParameterShards::shard(std::size_t tensor) const {
  return {buffer_.tensor(dtype_).slice(layout().offset(tensor), layout().shard(tensor))};
}

std::optional<PlacedTensor> DeviceParameterShards::of(const SubGroup& group) const {
  return PlacedTensor{buffer_.tensor(dtype_).slice(group.offset, group.numel)};
}

}  // namespace dstune
