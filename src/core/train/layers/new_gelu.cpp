#include "core/train/layers/new_gelu.hpp"

#include <utility>

#include "core/device/operations/gelu_new.hpp"

namespace dstune::layers {

GeluSaved NewGelu::saved(const Workspace& work) const {
  return {tanh.tensor(work.dtype), half_x.tensor(work.dtype), one_plus_tanh.tensor(work.dtype)};
}

Buffer NewGelu::forward(const Workspace& work, ModuleHooks& hooks, Buffer x) {
  input = std::move(x);
  hooks.fetch(module);
  tanh = work.activation(size);
  half_x = work.activation(size);
  one_plus_tanh = work.activation(size);
  Buffer y = work.activation(size);
  work.device->run(
      GeluNew{.x = input.tensor(work.dtype), .saved = saved(work), .out = y.tensor(work.dtype)});
  hooks.release(module);
  return y;
}

Buffer NewGelu::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y) {
  hooks.fetch(module);
  Buffer d_x = work.activation(size);
  work.device->run(GeluNewBackward{.d_out = d_y.tensor(work.dtype),
                                   .x = input.tensor(work.dtype),
                                   .saved = saved(work),
                                   .d_x = d_x.tensor(work.dtype)});
  for (Buffer* used : {&input, &tanh, &half_x, &one_plus_tanh, &d_y}) used->reset();
  hooks.release(module);
  return d_x;
}

}  // namespace dstune::layers
