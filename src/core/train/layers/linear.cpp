#include "core/train/layers/linear.hpp"

#include <utility>

namespace dstune::layers {

Buffer Linear::forward(const Workspace& work, ZeroEngine& engine, const Buffer& x) const {
  engine.fetch(module);
  Buffer y = work.activation(out);
  const Matrix w = as_matrix(engine.parameter(weight), in, out);
  const Matrix y_matrix = work.matrix(y, out);
  work.device->gemm(Transpose::no, Transpose::no, work.matrix(x, in), w, 0, y_matrix);
  work.device->add_bias(y_matrix, engine.parameter(weight + 1));
  engine.release(module);
  return y;
}

Buffer Linear::backward(const Workspace& work, ZeroEngine& engine, const Buffer& d_y,
                        const Buffer& x) const {
  Device& device = *work.device;
  engine.fetch(module);
  const Matrix w = as_matrix(engine.parameter(weight), in, out);
  const Matrix d_y_matrix = work.matrix(d_y, out);
  Buffer d_bias = work.gradient(out);
  device.bias_gradient(d_y_matrix, d_bias.tensor(work.dtype));
  engine.gradient_ready(weight + 1, std::move(d_bias));

  Buffer d_x = work.activation(in);
  device.gemm(Transpose::no, Transpose::yes, d_y_matrix, w, 0, work.matrix(d_x, in));
  Buffer d_weight = work.gradient(in * out);
  device.gemm(Transpose::yes, Transpose::no, work.matrix(x, in), d_y_matrix, 0,
              as_matrix(d_weight.tensor(work.dtype), in, out));
  engine.gradient_ready(weight, std::move(d_weight));
  engine.release(module);
  return d_x;
}

}  // namespace dstune::layers
