#include "core/train/zero/layout/placed_tensor.hpp"

#include "core/device/operations/elementwise.hpp"

namespace dstune {
namespace {

void convert_on_host(Device& device, Tensor from, Tensor to) {
  if (from.dtype == to.dtype) {
    device.run_on_host(MemoryPass::master_cast, Copy{from, to});
  } else {
    device.run_on_host(MemoryPass::master_cast, Cast{from, to});
  }
}

void transfer(Device& device, Tensor from, Tensor to, Transfer direction, Tier tier) {
  device.transfer({from, to, direction, TransferPurpose::update, tier, true});
}

}  // namespace

void copy_weights(Device& device, const PlacedTensor& from, const PlacedTensor& to) {
  const bool from_host = is_of_host(from.tier);
  if (from_host == is_of_host(to.tier)) {
    if (from_host) return convert_on_host(device, from.tensor, to.tensor);
    return device.run(MemoryPass::master_cast, Cast{from.tensor, to.tensor});
  }
  const Transfer direction = from_host ? Transfer::host_to_device : Transfer::device_to_host;
  if (from.tensor.dtype == to.tensor.dtype) {
    const Tier tier = from_host ? from.tier : to.tier;
    return transfer(device, from.tensor, to.tensor, direction, tier);
  }
  const DType sent = from_host ? to.tensor.dtype : from.tensor.dtype;
  const Buffer passing =
      make_buffer(device, MemoryCategory::temporaries, to.tensor.numel, sent, Tier::pageable);
  const Tensor converted = passing.tensor(sent);
  if (from_host) convert_on_host(device, from.tensor, converted);
  const Tensor source = from_host ? converted : from.tensor;
  const Tensor target = from_host ? to.tensor : converted;
  transfer(device, source, target, direction, Tier::pageable);
  if (!from_host) convert_on_host(device, converted, to.tensor);
}

}  // namespace dstune
