#include "core/train/families/phi3/phi3_mlp.hpp"

#include <utility>

#include "core/device/operations/activate.hpp"
#include "core/device/operations/rows.hpp"

namespace dstune::llama {

using layers::Workspace;

namespace {

constexpr std::int64_t kGate = 0;
constexpr std::int64_t kUp = 1;

}  // namespace

Phi3Mlp::Phi3Mlp(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
                 const std::string& name)
    : inner_size_(spec.inner_size),
      module_(names.module(name)),
      gate_up_proj_(names, name + ".gate_up_proj", spec.hidden_size, 2 * spec.inner_size,
                    layers::WeightOrder::out_in, false),
      down_proj_(names, name + ".down_proj", spec.inner_size, spec.hidden_size,
                 layers::WeightOrder::out_in, false),
      activation_fn_(names.module(name + ".activation_fn"), settings.activation, spec.inner_size),
      saves_result_(settings.activation == "relu" || settings.activation == "tanh" ||
                    settings.activation == "sigmoid") {}

Matrix Phi3Mlp::half(const Workspace& work, const Buffer& both, std::int64_t which) const {
  const Tensor all = both.tensor(work.dtype);
  const Tensor from = all.slice(which * inner_size_, all.numel - which * inner_size_);
  return {from.data, work.rows(), inner_size_, work.dtype, 2 * inner_size_};
}

Buffer Phi3Mlp::taken_from(const Workspace& work, const Buffer& both, std::int64_t which) const {
  Buffer part = work.activation(inner_size_);
  work.device->run(CopyRows{half(work, both, which), work.matrix(part, inner_size_)});
  return part;
}

void Phi3Mlp::multiply(const Workspace& work, const Buffer& a, const Buffer& b,
                       const Buffer& out) const {
  work.device->run(Multiply{a.tensor(work.dtype), b.tensor(work.dtype), out.tensor(work.dtype)});
}

Buffer Phi3Mlp::forward(const Workspace& work, ModuleHooks& hooks, Buffer x) {
  hooks.fetch(module_);
  input_ = std::move(x);
  {
    Buffer both = gate_up_proj_.forward(work, hooks, input_);
    up_ = taken_from(work, both, kUp);
    Buffer gate = taken_from(work, both, kGate);
    both.reset();
    if (saves_result_) gate_ = work.activation(inner_size_);
    activated_ = activation_fn_.forward(work, hooks, std::move(gate));
  }
  product_ = work.activation(inner_size_);
  multiply(work, up_, activated_, product_);
  Buffer out = down_proj_.forward(work, hooks, product_);
  if (!gate_up_proj_.keeps_input(work, hooks)) input_.reset();
  if (!down_proj_.keeps_input(work, hooks)) product_.reset();
  hooks.release(module_);
  return out;
}

Buffer Phi3Mlp::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out) {
  hooks.fetch(module_);
  Buffer d_product = down_proj_.backward(work, hooks, d_out, product_);
  product_.reset();
  Buffer d_up = work.activation(inner_size_);
  multiply(work, d_product, activated_, d_up);
  Buffer d_activated = work.activation(inner_size_);
  multiply(work, d_product, up_, d_activated);
  for (Buffer* used : {&d_product, &up_, &gate_}) used->reset();
  if (!saves_result_) activated_.reset();
  Buffer d_gate =
      activation_fn_.backward(work, hooks, std::move(d_activated), std::move(activated_));
  const Buffer d_both = together(work, d_gate, d_up);
  d_gate.reset();
  d_up.reset();
  Buffer d_x = gate_up_proj_.backward(work, hooks, d_both, input_);
  input_.reset();
  hooks.release(module_);
  return d_x;
}

// torch.cat, the gradient of a split.
Buffer Phi3Mlp::together(const Workspace& work, const Buffer& d_gate, const Buffer& d_up) const {
  Buffer both = work.activation(2 * inner_size_);
  work.device->run(CopyRows{work.matrix(d_gate, inner_size_), half(work, both, kGate)});
  work.device->run(CopyRows{work.matrix(d_up, inner_size_), half(work, both, kUp)});
  return both;
}

}  // namespace dstune::llama
