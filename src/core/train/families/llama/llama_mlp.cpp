#include "core/train/families/llama/llama_mlp.hpp"

#include <utility>

#include "core/device/operations/activate.hpp"
#include "core/device/operations/add.hpp"

namespace dstune::llama {

using layers::WeightOrder;
using layers::Workspace;

LlamaMlp::LlamaMlp(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
                   const std::string& name)
    : inner_size_(spec.inner_size),
      module_(names.module(name)),
      gate_proj_(names, name + ".gate_proj", spec.hidden_size, spec.inner_size, WeightOrder::out_in,
                 settings.mlp_bias),
      up_proj_(names, name + ".up_proj", spec.hidden_size, spec.inner_size, WeightOrder::out_in,
               settings.mlp_bias),
      down_proj_(names, name + ".down_proj", spec.inner_size, spec.hidden_size, WeightOrder::out_in,
                 settings.mlp_bias),
      act_fn_(names.module(name + ".act_fn"), settings.activation, spec.inner_size),
      act_saves_result_(settings.activation == "relu" || settings.activation == "tanh" ||
                        settings.activation == "sigmoid") {}

void LlamaMlp::multiply(const Workspace& work, const Buffer& a, const Buffer& b,
                        const Buffer& out) const {
  work.device->run(Multiply{a.tensor(work.dtype), b.tensor(work.dtype), out.tensor(work.dtype)});
}

Buffer LlamaMlp::forward(const Workspace& work, ModuleHooks& hooks, Buffer x) {
  hooks.fetch(module_);
  input_ = std::move(x);
  activated_ = act_fn_.forward(work, hooks, gate_proj_.forward(work, hooks, input_));
  up_ = up_proj_.forward(work, hooks, input_);
  product_ = work.activation(inner_size_);
  multiply(work, activated_, up_, product_);
  Buffer out = down_proj_.forward(work, hooks, product_);
  if (!is_shared_ && !keeps_input(work, hooks)) input_.reset();
  if (!down_proj_.keeps_input(work, hooks)) product_.reset();
  hooks.release(module_);
  return out;
}

// In the order of autograd, which goes back to what ran last: up before gate.
Buffer LlamaMlp::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out) {
  hooks.fetch(module_);
  Buffer d_product = down_proj_.backward(work, hooks, d_out, product_);
  product_.reset();
  Buffer d_activated = work.activation(inner_size_);
  multiply(work, d_product, up_, d_activated);
  Buffer d_up = work.activation(inner_size_);
  multiply(work, d_product, activated_, d_up);
  for (Buffer* used : {&d_product, &up_}) used->reset();
  if (!act_saves_result_) activated_.reset();

  Buffer d_x = up_proj_.backward(work, hooks, d_up, input_);
  d_up.reset();
  Buffer d_gate = act_fn_.backward(work, hooks, std::move(d_activated), std::move(activated_));
  const Buffer term = gate_proj_.backward(work, hooks, d_gate, input_);
  for (Buffer* used : {&d_gate, &input_}) used->reset();
  work.device->run(Add{d_x.tensor(work.dtype), term.tensor(work.dtype)});
  hooks.release(module_);
  return d_x;
}

}  // namespace dstune::llama
