#include "core/train/layers/rms_norm_layer.hpp"

#include <utility>

#include "core/device/operations/copy.hpp"

namespace dstune::layers {

RmsNormLayer::RmsNormLayer(const ModelNames& names, const std::string& name, std::int64_t columns,
                           double eps, std::int64_t vectors_of_row, double weight_offset)
    : module(names.module(name)),
      weight(names.tensor(name + ".weight")),
      size(columns),
      epsilon(eps),
      vectors(vectors_of_row),
      offset(weight_offset) {}

Matrix RmsNormLayer::matrix(const Workspace& work, const Buffer& buffer, DType dtype) const {
  return as_matrix(buffer.tensor(dtype), work.rows() * vectors, size);
}

RmsNormSaved RmsNormLayer::saved(const Workspace& work, const Buffer& x) const {
  return {matrix(work, keeps_input(work) ? x : copy, DType::fp32), rrms.tensor(DType::fp32),
          matrix(work, normalised, inner_type(work))};
}

void RmsNormLayer::make_normalised(const Workspace& work) {
  normalised =
      make_buffer(*work.device, MemoryCategory::activations, elements(work), inner_type(work));
}

// Saved by the product with it. The operation adds the offset itself.
void RmsNormLayer::shift(const Workspace& work, const ModuleHooks& hooks) {
  if (offset == 0) return;
  shifted = make_buffer(*work.device, MemoryCategory::activations, size, DType::fp32);
  work.device->run(Cast{hooks.parameter(weight), shifted.tensor(DType::fp32)});
}

Buffer RmsNormLayer::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x) {
  return inside(hooks, module, [&] {
    if (!keeps_input(work)) copy = work.activation_fp32(vectors * size);
    rrms = work.activation_fp32(vectors);
    make_normalised(work);
    shift(work, hooks);
    const Buffer scratch = make_buffer(*work.device, MemoryCategory::temporaries,
                                       rms_norm_scratch(work.dtype, elements(work)), DType::fp32);
    Buffer y = work.activation(vectors * size);
    work.device->run(RmsNorm{.x = matrix(work, x, work.dtype),
                             .weight = hooks.parameter(weight),
                             .epsilon = epsilon,
                             .offset = offset,
                             .saved = saved(work, x),
                             .scratch = scratch.tensor(DType::fp32),
                             .out = matrix(work, y, work.dtype)});
    if (!hooks.is_trainable(weight)) normalised.reset();
    return y;
  });
}

void RmsNormLayer::differentiate(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                                 const Buffer& d_x, const Buffer& x) {
  const Buffer scratch =
      make_buffer(*work.device, MemoryCategory::temporaries,
                  rms_norm_backward_scratch(work.dtype, elements(work)), DType::fp32);
  const bool trains = hooks.is_trainable(weight);
  Buffer d_weight = trains ? work.gradient(size) : Buffer();
  if (!trains) make_normalised(work);  // room that the chain of kernels has anyway
  work.device->run(RmsNormBackward{.d_out = matrix(work, d_y, work.dtype),
                                   .weight = hooks.parameter(weight),
                                   .offset = offset,
                                   .saved = saved(work, x),
                                   .scratch = scratch.tensor(DType::fp32),
                                   .d_x = matrix(work, d_x, work.dtype),
                                   .d_weight = trains ? d_weight.tensor(work.dtype) : Tensor{}});
  for (Buffer* used : {&copy, &rrms, &normalised, &shifted}) used->reset();
  if (trains) hooks.gradient_ready(weight, std::move(d_weight));
}

Buffer RmsNormLayer::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y,
                              const Buffer& x) {
  return inside(hooks, module, [&]() -> Buffer {
    hooks.saved_is_read();
    differentiate(work, hooks, d_y, d_y, x);
    return std::move(d_y);
  });
}

Buffer RmsNormLayer::backward_beside(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                                     const Buffer& x) {
  return inside(hooks, module, [&] {
    hooks.saved_is_read();
    Buffer d_x = work.activation(vectors * size);
    differentiate(work, hooks, d_y, d_x, x);
    return d_x;
  });
}

}  // namespace dstune::layers
