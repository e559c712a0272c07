#include "core/train/zero/offload/send_gradient.hpp"

#include "core/device/operations/elementwise.hpp"

namespace dstune {

void send_gradient(Device& device, Tensor gradient, Tensor place, Tier tier) {
  Buffer single;
  if (gradient.dtype != DType::fp32) {
    single = make_buffer(device, MemoryCategory::temporaries, gradient.numel, DType::fp32);
    device.run(MemoryPass::master_gradient, Cast{gradient, single.tensor(DType::fp32)});
    gradient = single.tensor(DType::fp32);
  }
  if (is_of_host(tier)) {
    device.transfer({gradient, place, Transfer::device_to_host, TransferPurpose::gradient, tier});
  } else {
    device.run(MemoryPass::master_gradient, Copy{gradient, place});
  }
}

}  // namespace dstune
