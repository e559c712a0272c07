#include "core/train/zero/reduction/gradient_message.hpp"

#include "core/device/operations/elementwise.hpp"

namespace dstune {

GradientMessage::GradientMessage(Device& device, Tensor original, DType dtype)
    : device_(device), original_(original), tensor_(original) {
  if (original.dtype == dtype) return;
  copy_ = make_buffer(device, MemoryCategory::temporaries, original.numel, dtype);
  tensor_ = copy_.tensor(dtype);
  device.run(MemoryPass::message_cast, Cast{original, tensor_});
}

void GradientMessage::write_back() const {
  if (copy_) device_.run(MemoryPass::message_cast, Cast{tensor_, original_});
}

}  // namespace dstune
