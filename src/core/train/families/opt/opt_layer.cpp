#include "core/train/families/opt/opt_layer.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"

namespace dstune::opt {

namespace {

using layers::WeightOrder;
using layers::Workspace;

std::string name_of(std::int64_t index, std::string_view part = {}) {
  return concat("model.decoder.layers.", index, part);
}

// What drops out in one layer.
enum class Dropped : std::uint64_t { attention = 1, attention_output = 2, mlp_output = 3 };

std::uint64_t seed_at(std::uint64_t seed, std::int64_t layer, Dropped place) {
  return layers::seed_of(seed,
                         3 * static_cast<std::uint64_t>(layer) + static_cast<std::uint64_t>(place));
}

// PyTorch's sum is a further buffer, which lives for one addition.
void add(const Workspace& work, const Buffer& sum, const Buffer& more) {
  work.device->run(Add{sum.tensor(work.dtype), more.tensor(work.dtype)});
}

}  // namespace

Buffer OptLayer::Norms::forward(const Workspace& work, ModuleHooks& hooks, Buffer x) {
  input = std::move(x);
  return norm.forward(work, hooks, input, stats);
}

Buffer OptLayer::Norms::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y) {
  Buffer d_x = norm.backward(work, hooks, d_y, input, stats);
  input.reset();
  stats.reset();
  return d_x;
}

OptLayer::OptLayer(const ModelSpec& spec, const OptSettings& settings, const ModelNames& names,
                   std::int64_t index)
    : norm_before_(settings.norm_before),
      index_(index),
      module_(names.module(name_of(index))),
      attention_(spec, settings, names, name_of(index, ".self_attn")),
      attention_dropout_{.module = {}, .probability = spec.residual_dropout},
      act_(names.module(name_of(index, ".activation_fn")), settings.activation, spec.inner_size),
      attention_norm_{.norm = {names, name_of(index, ".self_attn_layer_norm"), spec.hidden_size,
                               spec.layer_norm_epsilon, settings.norm_parameters}},
      fc1_(names, name_of(index, ".fc1"), spec.hidden_size, spec.inner_size, WeightOrder::out_in,
           settings.has_bias),
      fc2_(names, name_of(index, ".fc2"), spec.inner_size, spec.hidden_size, WeightOrder::out_in,
           settings.has_bias),
      mlp_dropout_{.module = {}, .probability = spec.residual_dropout},
      mlp_norm_{.norm = {names, name_of(index, ".final_layer_norm"), spec.hidden_size,
                         spec.layer_norm_epsilon, settings.norm_parameters}} {
  fc1_.takes_matrix = fc2_.takes_matrix = true;
}

Buffer OptLayer::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, const Buffer& mask,
                         std::uint64_t seed) {
  hooks.fetch(module_);
  Buffer out;
  if (norm_before_) {
    attention_input_ = attention_norm_.forward(work, hooks, std::move(x));
    Buffer sum = attention_forward(work, hooks, attention_input_, mask, seed);
    add(work, sum, attention_norm_.input);
    if (!attention_.keeps_input(work, hooks)) attention_input_.reset();
    mlp_input_ = mlp_norm_.forward(work, hooks, std::move(sum));
    out = mlp_forward(work, hooks, mlp_input_, seed);
    add(work, out, mlp_norm_.input);
  } else {
    attention_input_ = std::move(x);
    Buffer sum = attention_forward(work, hooks, attention_input_, mask, seed);
    add(work, sum, attention_input_);
    saves_input_ = attention_.keeps_input(work, hooks);
    mlp_input_ = attention_norm_.forward(work, hooks, std::move(sum));
    sum = mlp_forward(work, hooks, mlp_input_, seed);
    add(work, sum, mlp_input_);
    out = mlp_norm_.forward(work, hooks, std::move(sum));
  }
  if (!fc1_.keeps_input(work, hooks)) mlp_input_.reset();
  hooks.release(module_);
  return out;
}

Buffer OptLayer::attention_forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x,
                                   const Buffer& mask, std::uint64_t seed) {
  Buffer out = attention_.forward(work, hooks, x, mask, seed_at(seed, index_, Dropped::attention));
  return attention_dropout_.forward(work, hooks, seed_at(seed, index_, Dropped::attention_output),
                                    std::move(out));
}

Buffer OptLayer::mlp_forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x,
                             std::uint64_t seed) {
  activated_ = act_.forward(work, hooks, fc1_.forward(work, hooks, x));
  Buffer out = fc2_.forward(work, hooks, activated_);
  if (!fc2_.keeps_input(work, hooks) && !act_.reads_result()) activated_.reset();
  return mlp_dropout_.forward(work, hooks, seed_at(seed, index_, Dropped::mlp_output),
                              std::move(out));
}

Buffer OptLayer::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_out,
                          std::uint64_t seed) {
  hooks.fetch(module_);
  if (!norm_before_) d_out = mlp_norm_.backward(work, hooks, d_out);
  Buffer d_middle = mlp_backward(work, hooks, d_out);
  if (norm_before_) d_middle = mlp_norm_.backward(work, hooks, d_middle);
  add(work, d_middle, d_out);
  d_out.reset();
  if (!norm_before_) d_middle = attention_norm_.backward(work, hooks, d_middle);
  Buffer d_input = attention_backward(work, hooks, d_middle, seed);
  if (norm_before_) d_input = attention_norm_.backward(work, hooks, d_input);
  add(work, d_input, d_middle);
  hooks.release(module_);
  return d_input;
}

Buffer OptLayer::mlp_backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out) {
  Buffer dropped = mlp_dropout_.backward(work, hooks, d_out);
  Buffer d_activated = fc2_.backward(work, hooks, dropped ? dropped : d_out, activated_);
  dropped.reset();
  const Buffer d_inner = act_.backward(work, hooks, std::move(d_activated), std::move(activated_));
  Buffer d_x = fc1_.backward(work, hooks, d_inner, mlp_input_);
  mlp_input_.reset();
  return d_x;
}

Buffer OptLayer::attention_backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                                    std::uint64_t seed) {
  const Buffer dropped = attention_dropout_.backward(work, hooks, d_out);
  Buffer d_x = attention_.backward(work, hooks, dropped ? dropped : d_out, attention_input_,
                                   seed_at(seed, index_, Dropped::attention));
  attention_input_.reset();
  return d_x;
}

}  // namespace dstune::opt
