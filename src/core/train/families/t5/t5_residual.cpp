#include "core/train/families/t5/t5_residual.hpp"

#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/clamp.hpp"
#include "core/device/operations/norm_and_overflow.hpp"

namespace dstune::t5 {

using layers::Workspace;

Buffer FiniteNumbers::forward(const Workspace& work, Buffer x) {
  if (work.dtype != DType::fp16) return x;
  Device& device = *work.device;
  input_ = std::move(x);
  const Tensor in = input_.tensor(work.dtype);
  flag_ = std::make_unique<Scalar>(device, DType::int8);
  flag_->set_zero();
  device.run(FindInfOrNan{in, flag_->tensor()});
  Buffer out = make_buffer(device, MemoryCategory::activations, in.numel, work.dtype);
  device.run(Clamp{.in = in, .flag = flag_->tensor(), .out = out.tensor(work.dtype)});
  return out;
}

void FiniteNumbers::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y) {
  if (work.dtype != DType::fp16) return;
  hooks.saved_is_read();
  const Tensor d = d_y.tensor(work.dtype);
  work.device->run(ClampBackward{
      .d_out = d, .in = input_.tensor(work.dtype), .flag = flag_->tensor(), .d_in = d});
  input_.reset();
  flag_.reset();
}

Residual::Residual(const ModelSpec& spec, const ModelNames& names, const std::string& name)
    : module_(names.module(name)),
      norm_(names, name + ".layer_norm", spec.hidden_size, spec.layer_norm_epsilon),
      dropout_{.module = names.module(name + ".dropout"), .probability = spec.residual_dropout} {}

// The sum is written over its second term: PyTorch's third tensor lives for this one addition.
Buffer Residual::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, std::uint64_t seed,
                         const Inner& inner) {
  hooks.fetch(module_);
  input_ = std::move(x);
  Buffer y = inner(norm_.forward(work, hooks, input_));
  y = dropout_.forward(work, hooks, seed, std::move(y));
  work.device->run(Add{y.tensor(work.dtype), input_.tensor(work.dtype)});
  hooks.release(module_);
  return finite_.forward(work, std::move(y));
}

Buffer Residual::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y,
                          const InnerBackward& inner) {
  finite_.backward(work, hooks, d_y);
  hooks.fetch(module_);
  Buffer d_dropped = dropout_.backward(work, hooks, d_y);
  Buffer d_normed = inner(d_dropped ? d_dropped : d_y);
  d_dropped.reset();
  Buffer d_x = norm_.backward(work, hooks, std::move(d_normed), input_);
  input_.reset();
  work.device->run(Add{d_x.tensor(work.dtype), d_y.tensor(work.dtype)});
  hooks.release(module_);
  return d_x;
}

}  // namespace dstune::t5
