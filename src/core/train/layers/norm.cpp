#include "core/train/layers/norm.hpp"

#include <utility>

namespace dstune::layers {

namespace {

LayerNormSaved saved_in(const Workspace& work, const Buffer& stats) {
  const Tensor both = stats.tensor(DType::fp32);
  return {both.slice(0, work.rows()), both.slice(work.rows(), work.rows())};
}

}  // namespace

Buffer Norm::forward(const Workspace& work, ZeroEngine& engine, const Buffer& x,
                     Buffer& stats) const {
  const std::int64_t h = work.model.hidden_size;
  engine.fetch(module);
  Buffer y = work.activation(h);
  stats = work.activation_fp32(2);
  work.device->layer_norm(work.matrix(x, h), engine.parameter(weight), engine.parameter(weight + 1),
                          work.model.layer_norm_epsilon, saved_in(work, stats), work.matrix(y, h));
  engine.release(module);
  return y;
}

Buffer Norm::backward(const Workspace& work, ZeroEngine& engine, const Buffer& d_y, const Buffer& x,
                      const Buffer& stats) const {
  const std::int64_t h = work.model.hidden_size;
  engine.fetch(module);
  Buffer d_x = work.activation(h);
  Buffer d_gamma = work.gradient(h);
  Buffer d_beta = work.gradient(h);
  work.device->layer_norm_backward(work.matrix(d_y, h), work.matrix(x, h), engine.parameter(weight),
                                   saved_in(work, stats), work.matrix(d_x, h),
                                   d_gamma.tensor(work.dtype), d_beta.tensor(work.dtype));
  engine.gradient_ready(weight, std::move(d_gamma));
  engine.gradient_ready(weight + 1, std::move(d_beta));
  engine.release(module);
  return d_x;
}

}  // namespace dstune::layers
