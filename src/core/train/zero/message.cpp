#include "core/train/zero/message.hpp"

namespace dstune {

Message::Message(Device& device, Tensor original, DType dtype)
    : device_(device), original_(original), tensor_(original) {
  if (original.dtype == dtype) return;
  copy_ = make_buffer(device, MemoryCategory::temporaries, original.numel, dtype);
  tensor_ = copy_.tensor(dtype);
  device.cast(original, tensor_);
}

void Message::write_back() const {
  if (copy_) device_.cast(tensor_, original_);
}

}  // namespace dstune
