#include "core/train/zero/reduction/gradient_message.hpp"

#include "core/train/zero/reduction/passes.hpp"

namespace dstune {

GradientMessage::GradientMessage(Device& device, Tensor original, DType dtype)
    : device_(device), original_(original), tensor_(original) {
  if (original.dtype == dtype) return;
  copy_ = make_buffer(device, MemoryCategory::temporaries, original.numel, dtype);
  tensor_ = copy_.tensor(dtype);
  Passes(device).cast(Pass::message_cast, original, tensor_);
}

void GradientMessage::write_back() const {
  if (copy_) Passes(device_).cast(Pass::message_cast, tensor_, original_);
}

}  // namespace dstune
