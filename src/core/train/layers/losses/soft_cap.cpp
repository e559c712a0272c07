#include "core/train/layers/losses/soft_cap.hpp"

#include <utility>

#include "core/device/operations/activations.hpp"
#include "core/device/operations/elementwise.hpp"

namespace dstune::layers {

namespace {

Buffer like(const Workspace& work, const Buffer& other, DType dtype) {
  return make_buffer(*work.device, MemoryCategory::activations, other.tensor(dtype).numel, dtype);
}

/// A new tensor, and frees the old one.
Buffer scaled(const Workspace& work, Buffer in, double factor, DType dtype) {
  Buffer out = like(work, in, dtype);
  work.device->run(ScaleTo{in.tensor(dtype), factor, out.tensor(dtype)});
  return out;
}

}  // namespace

Buffer SoftCap::forward(const Workspace& work, double cap, Buffer x, DType dtype) {
  Buffer divided = scaled(work, std::move(x), 1 / cap, dtype);
  tanh = like(work, divided, dtype);
  work.device->run(Activate{Activation::tanh, divided.tensor(dtype), tanh.tensor(dtype)});
  divided.reset();
  Buffer capped = like(work, tanh, dtype);
  work.device->run(ScaleTo{tanh.tensor(dtype), cap, capped.tensor(dtype)});
  return capped;
}

Buffer SoftCap::backward(const Workspace& work, double cap, Buffer d_out, DType dtype) {
  d_out = scaled(work, std::move(d_out), cap, dtype);
  Buffer d_divided = like(work, d_out, dtype);
  work.device->run(ActivateBackward{Activation::tanh, d_out.tensor(dtype), tanh.tensor(dtype),
                                    d_divided.tensor(dtype)});
  tanh.reset();
  d_out.reset();
  return scaled(work, std::move(d_divided), 1 / cap, dtype);
}

}  // namespace dstune::layers
