#include "core/train/layers/new_gelu.hpp"

#include <utility>

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
  work.device->gelu_new(input.tensor(work.dtype), saved(work), y.tensor(work.dtype));
  hooks.release(module);
  return y;
}

Buffer NewGelu::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y) {
  hooks.fetch(module);
  Buffer d_x = work.activation(size);
  work.device->gelu_new_backward(d_y.tensor(work.dtype), input.tensor(work.dtype), saved(work),
                                 d_x.tensor(work.dtype));
  for (Buffer* used : {&input, &tanh, &half_x, &one_plus_tanh, &d_y}) used->reset();
  hooks.release(module);
  return d_x;
}

}  // namespace dstune::layers
