#include "core/train/layers/norm.hpp"

#include <utility>

#include "core/device/operations/fill.hpp"
#include "core/device/operations/layer_norm.hpp"

namespace dstune::layers {

namespace {

LayerNormSaved saved_in(const Workspace& work, const Buffer& stats) {
  const Tensor both = stats.tensor(DType::fp32);
  return {both.slice(0, work.rows()), both.slice(work.rows(), work.rows())};
}

}  // namespace

Norm::Norm(const ModelNames& names, const std::string& name, std::int64_t columns, double eps,
           bool has_parameters)
    : module(names.module(name)), size(columns), epsilon(eps) {
  if (!has_parameters) return;
  weight = names.tensor(name + ".weight");
  bias = names.tensor(name + ".bias");
}

Buffer Norm::constant(const Workspace& work, double value) const {
  Buffer row = make_buffer(*work.device, MemoryCategory::temporaries, size, work.dtype);
  work.device->run(FillConstant{row.tensor(work.dtype), value});
  return row;
}

Buffer Norm::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x,
                     Buffer& stats) const {
  hooks.fetch(module);
  const Buffer one = weight ? Buffer() : constant(work, 1);
  const Buffer zero = bias ? Buffer() : constant(work, 0);
  Buffer y = work.activation(size);
  stats = work.activation_fp32(2);
  work.device->run(LayerNorm{.x = work.matrix(x, size),
                             .gamma = weight ? hooks.parameter(*weight) : one.tensor(work.dtype),
                             .beta = bias ? hooks.parameter(*bias) : zero.tensor(work.dtype),
                             .epsilon = epsilon,
                             .saved = saved_in(work, stats),
                             .out = work.matrix(y, size)});
  hooks.release(module);
  return y;
}

Buffer Norm::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y, const Buffer& x,
                      const Buffer& stats) const {
  hooks.fetch(module);
  hooks.saved_is_read();
  const Buffer one = weight ? Buffer() : constant(work, 1);
  Buffer d_x = work.activation(size);
  Buffer d_gamma = work.gradient(size);
  Buffer d_beta = work.gradient(size);
  work.device->run(
      LayerNormBackward{.d_out = work.matrix(d_y, size),
                        .x = work.matrix(x, size),
                        .gamma = weight ? hooks.parameter(*weight) : one.tensor(work.dtype),
                        .saved = saved_in(work, stats),
                        .d_x = work.matrix(d_x, size),
                        .d_gamma = d_gamma.tensor(work.dtype),
                        .d_beta = d_beta.tensor(work.dtype)});
  if (weight && hooks.is_trainable(*weight)) hooks.gradient_ready(*weight, std::move(d_gamma));
  if (bias && hooks.is_trainable(*bias)) hooks.gradient_ready(*bias, std::move(d_beta));
  hooks.release(module);
  return d_x;
}

}  // namespace dstune::layers
