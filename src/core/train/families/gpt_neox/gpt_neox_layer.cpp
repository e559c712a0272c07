#include "core/train/families/gpt_neox/gpt_neox_layer.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"

namespace dstune::gpt_neox {

namespace {

using layers::Rotary;
using layers::WeightOrder;
using layers::Workspace;

std::string name_of(std::int64_t index, std::string_view part = {}) {
  return concat("gpt_neox.layers.", index, part);
}

// What drops out in one layer; 0 is the embedding.
enum class Dropped : std::uint64_t { attention = 1, attention_output = 2, mlp_output = 3 };

std::uint64_t seed_at(std::uint64_t seed, std::int64_t layer, Dropped place) {
  return layers::seed_of(seed,
                         3 * static_cast<std::uint64_t>(layer) + static_cast<std::uint64_t>(place));
}

void add(const Workspace& work, const Buffer& sum, const Buffer& more) {
  work.device->run(Add{sum.tensor(work.dtype), more.tensor(work.dtype)});
}

}  // namespace

NeoxLayer::NeoxLayer(const ModelSpec& spec, const NeoxSettings& settings, const ModelNames& names,
                     std::int64_t index)
    : is_parallel_(settings.parallel_residual),
      index_(index),
      module_(names.module(name_of(index))),
      input_norm_(names, name_of(index, ".input_layernorm"), spec.hidden_size,
                  spec.layer_norm_epsilon),
      post_attention_norm_(names, name_of(index, ".post_attention_layernorm"), spec.hidden_size,
                           spec.layer_norm_epsilon),
      attention_dropout_{.module = names.module(name_of(index, ".post_attention_dropout")),
                         .probability = spec.residual_dropout},
      mlp_dropout_{.module = names.module(name_of(index, ".post_mlp_dropout")),
                   .probability = spec.residual_dropout},
      attention_(spec, settings, names, name_of(index, ".attention")),
      mlp_(names.module(name_of(index, ".mlp"))),
      h_to_4h_(names, name_of(index, ".mlp.dense_h_to_4h"), spec.hidden_size, spec.inner_size,
               WeightOrder::out_in),
      to_h_(names, name_of(index, ".mlp.dense_4h_to_h"), spec.inner_size, spec.hidden_size,
            WeightOrder::out_in),
      act_(names.module(name_of(index, ".mlp.act")), settings.activation, spec.inner_size) {}

// Sums are made in place: PyTorch's further buffer lives for one addition, and more is in use at
// the head in any case.
Buffer NeoxLayer::forward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary, Buffer x,
                          const Buffer& mask, std::uint64_t seed) {
  hooks.fetch(module_);
  input_ = std::move(x);
  Buffer attended = attention_forward(work, hooks, rotary, mask, seed);
  Buffer out;
  if (is_parallel_) {
    out = mlp_forward(work, hooks, input_, seed);
    add(work, out, attended);
    add(work, out, input_);
  } else {
    middle_ = std::move(attended);
    add(work, middle_, input_);
    out = mlp_forward(work, hooks, middle_, seed);
    add(work, out, middle_);
  }
  hooks.release(module_);
  return out;
}

Buffer NeoxLayer::attention_forward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                                    const Buffer& mask, std::uint64_t seed) {
  attention_input_ = input_norm_.forward(work, hooks, input_, input_stats_);
  Buffer out = attention_.forward(work, hooks, rotary, attention_input_, mask,
                                  seed_at(seed, index_, Dropped::attention));
  if (!attention_.keeps_input(work, hooks)) attention_input_.reset();
  return attention_dropout_.forward(work, hooks, seed_at(seed, index_, Dropped::attention_output),
                                    std::move(out));
}

Buffer NeoxLayer::mlp_forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x,
                              std::uint64_t seed) {
  mlp_input_ = post_attention_norm_.forward(work, hooks, x, mlp_stats_);
  hooks.fetch(mlp_);
  activated_ = act_.forward(work, hooks, h_to_4h_.forward(work, hooks, mlp_input_));
  Buffer out = to_h_.forward(work, hooks, activated_);
  if (!h_to_4h_.keeps_input(work, hooks)) mlp_input_.reset();
  if (!to_h_.keeps_input(work, hooks) && !act_.reads_result()) activated_.reset();
  hooks.release(mlp_);
  return mlp_dropout_.forward(work, hooks, seed_at(seed, index_, Dropped::mlp_output),
                              std::move(out));
}

// The MLP's part of forward is the later one, so autograd begins with it.
Buffer NeoxLayer::backward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                           Buffer d_out, std::uint64_t seed) {
  hooks.fetch(module_);
  Buffer d_residual = mlp_backward(work, hooks, d_out, is_parallel_ ? input_ : middle_);
  add(work, d_residual, d_out);
  middle_.reset();
  if (!is_parallel_) d_out.reset();
  Buffer d_input = attention_backward(work, hooks, rotary, is_parallel_ ? d_out : d_residual, seed);
  add(work, d_input, d_residual);
  hooks.release(module_);
  return d_input;
}

Buffer NeoxLayer::mlp_backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                               const Buffer& x) {
  Buffer dropped = mlp_dropout_.backward(work, hooks, d_out);
  hooks.fetch(mlp_);
  Buffer d_activated = to_h_.backward(work, hooks, dropped ? dropped : d_out, activated_);
  dropped.reset();
  Buffer d_inner = act_.backward(work, hooks, std::move(d_activated), std::move(activated_));
  const Buffer d_norm = h_to_4h_.backward(work, hooks, d_inner, mlp_input_);
  hooks.release(mlp_);
  d_inner.reset();
  mlp_input_.reset();
  Buffer d_x = post_attention_norm_.backward(work, hooks, d_norm, x, mlp_stats_);
  mlp_stats_.reset();
  return d_x;
}

Buffer NeoxLayer::attention_backward(const Workspace& work, ModuleHooks& hooks,
                                     const Rotary& rotary, const Buffer& d_out,
                                     std::uint64_t seed) {
  Buffer dropped = attention_dropout_.backward(work, hooks, d_out);
  const Buffer d_norm =
      attention_.backward(work, hooks, rotary, dropped ? dropped : d_out, attention_input_,
                          seed_at(seed, index_, Dropped::attention));
  dropped.reset();
  attention_input_.reset();
  Buffer d_input = input_norm_.backward(work, hooks, d_norm, input_, input_stats_);
  input_.reset();
  input_stats_.reset();
  return d_input;
}

}  // namespace dstune::gpt_neox
