#include "core/train/layers/linear.hpp"

#include <utility>

namespace dstune::layers {

Linear::Linear(const ModelNames& names, const std::string& name, std::int64_t inputs,
               std::int64_t outputs)
    : module(names.module(name)),
      weight(names.tensor(name + ".weight")),
      bias(names.tensor(name + ".bias")),
      in(inputs),
      out(outputs) {}

Buffer Linear::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x) const {
  hooks.fetch(module);
  Buffer y = work.activation(out);
  const Matrix w = as_matrix(hooks.parameter(weight), in, out);
  const Matrix y_matrix = work.matrix(y, out);
  work.device->gemm(Transpose::no, Transpose::no, work.matrix(x, in), w, 0, y_matrix);
  work.device->add_bias(y_matrix, hooks.parameter(bias));
  hooks.release(module);
  return y;
}

Buffer Linear::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                        const Buffer& x) const {
  Device& device = *work.device;
  hooks.fetch(module);
  const Matrix w = as_matrix(hooks.parameter(weight), in, out);
  const Matrix d_y_matrix = work.matrix(d_y, out);
  Buffer d_bias = work.gradient(out);
  device.bias_gradient(d_y_matrix, d_bias.tensor(work.dtype));
  hooks.gradient_ready(bias, std::move(d_bias));

  Buffer d_x = work.activation(in);
  device.gemm(Transpose::no, Transpose::yes, d_y_matrix, w, 0, work.matrix(d_x, in));
  Buffer d_weight = work.gradient(in * out);
  device.gemm(Transpose::yes, Transpose::no, work.matrix(x, in), d_y_matrix, 0,
              as_matrix(d_weight.tensor(work.dtype), in, out));
  hooks.gradient_ready(weight, std::move(d_weight));
  hooks.release(module);
  return d_x;
}

}  // namespace dstune::layers
