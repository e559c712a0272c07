#include "core/train/families/t5/t5_mlp.hpp"

#include <utility>

#include "core/device/operations/activate.hpp"
#include "core/device/operations/add.hpp"
#include "core/model/t5/t5.hpp"

namespace dstune::t5 {

namespace {

using layers::Linear;
using layers::Workspace;

Linear linear(const ModelNames& names, const std::string& name, std::int64_t in, std::int64_t out) {
  return {names, name, in, out, layers::WeightOrder::out_in, false};
}

void multiply(const Workspace& work, const Buffer& a, const Buffer& b, const Buffer& out) {
  work.device->run(Multiply{a.tensor(work.dtype), b.tensor(work.dtype), out.tensor(work.dtype)});
}

bool saves_result(const std::string& activation) {
  return activation == "relu" || activation == "tanh" || activation == "sigmoid";
}

}  // namespace

Mlp::Mlp(const ModelSpec& spec, const ModelNames& names, const std::string& name)
    : inner_size_(spec.inner_size),
      act_saves_result_(saves_result(settings_of(spec).activation)),
      module_(names.module(name)),
      wi_(linear(names, name + (settings_of(spec).gated ? ".wi_0" : ".wi"), spec.hidden_size,
                 spec.inner_size)),
      act_(names.module(name + ".act"), settings_of(spec).activation, spec.inner_size),
      dropout_{.module = names.module(name + ".dropout"), .probability = spec.residual_dropout},
      wo_(linear(names, name + ".wo", spec.inner_size, spec.hidden_size)) {
  if (settings_of(spec).gated) {
    wi_1_ = linear(names, name + ".wi_1", spec.hidden_size, spec.inner_size);
  }
}

void Mlp::gate(const Workspace& work, ModuleHooks& hooks) {
  if (!wi_1_) return;
  up_ = wi_1_->forward(work, hooks, input_);
  product_ = work.activation(inner_size_);
  multiply(work, activated_, up_, product_);
}

Buffer Mlp::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, std::uint64_t seed) {
  hooks.fetch(module_);
  input_ = std::move(x);
  activated_ = act_.forward(work, hooks, wi_.forward(work, hooks, input_));
  gate(work, hooks);
  Buffer& inner = wi_1_ ? product_ : activated_;
  dropped_ = dropout_.forward_beside(work, hooks, seed, inner);
  if (dropped_ && (wi_1_ || !act_saves_result_)) inner.reset();
  Buffer out = wo_.forward(work, hooks, dropped_ ? dropped_ : inner);
  if (!wo_.keeps_input(work, hooks)) {
    for (Buffer* unread : {&dropped_, &product_}) unread->reset();
    if (!wi_1_ && !act_saves_result_) activated_.reset();
  }
  if (!wi_.keeps_input(work, hooks) && !(wi_1_ && wi_1_->keeps_input(work, hooks))) input_.reset();
  hooks.release(module_);
  return out;
}

/// The gradient by x of wi_1(x).
Buffer Mlp::gate_back(const Workspace& work, ModuleHooks& hooks, Buffer d_product,
                      Buffer& d_activated) {
  d_activated = work.activation(inner_size_);
  multiply(work, d_product, up_, d_activated);
  Buffer d_up = work.activation(inner_size_);
  multiply(work, d_product, activated_, d_up);
  for (Buffer* used : {&d_product, &up_}) used->reset();
  if (!act_saves_result_) activated_.reset();
  return wi_1_->backward(work, hooks, d_up, input_);
}

// In the order of autograd, which goes back to what ran last.
Buffer Mlp::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out) {
  hooks.fetch(module_);
  const Buffer& read = dropped_ ? dropped_ : (wi_1_ ? product_ : activated_);
  Buffer d_inner = wo_.backward(work, hooks, d_out, read);
  for (Buffer* used : {&dropped_, &product_}) used->reset();
  if (Buffer d_whole = dropout_.backward(work, hooks, d_inner)) d_inner = std::move(d_whole);
  Buffer d_x;
  if (wi_1_) {
    Buffer d_activated;
    d_x = gate_back(work, hooks, std::move(d_inner), d_activated);
    d_inner = std::move(d_activated);
  }
  const Buffer d_wi = act_.backward(work, hooks, std::move(d_inner), std::move(activated_));
  Buffer term = wi_.backward(work, hooks, d_wi, input_);
  input_.reset();
  hooks.release(module_);
  if (!d_x) return term;
  work.device->run(Add{d_x.tensor(work.dtype), term.tensor(work.dtype)});
  return d_x;
}

}  // namespace dstune::t5
