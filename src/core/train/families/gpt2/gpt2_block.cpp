#include "core/train/families/gpt2/gpt2_block.hpp"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/attention.hpp"

namespace dstune::gpt2 {

namespace {

using layers::Workspace;

std::string name_of(std::int64_t index, std::string_view part = {}) {
  std::string name = "transformer.h." + std::to_string(index);
  name += part;
  return name;
}

// What drops out in one block; 0 is the embedding.
enum class Dropped : std::uint64_t { attention = 1, attention_residual = 2, mlp_residual = 3 };

std::uint64_t seed_at(std::uint64_t seed, std::int64_t block, Dropped place) {
  return layers::seed_of(seed,
                         3 * static_cast<std::uint64_t>(block) + static_cast<std::uint64_t>(place));
}

double score_scale(const ModelSpec& spec, const Gpt2Settings& settings, std::int64_t index) {
  const double usual =
      settings.scales_scores ? 1 / std::sqrt(static_cast<double>(spec.head_size())) : 1;
  return settings.scales_by_inverse_layer ? usual / static_cast<double>(index + 1) : usual;
}

}  // namespace

Block::Block(const ModelSpec& spec, const Gpt2Settings& settings, const ModelNames& names,
             std::int64_t index)
    : spec_(spec),
      index_(index),
      score_scale_(score_scale(spec, settings, index)),
      module_(names.module(name_of(index))),
      ln_1_(names, name_of(index, ".ln_1"), spec.hidden_size, spec.layer_norm_epsilon),
      attn_(names.module(name_of(index, ".attn"))),
      c_attn_(names, name_of(index, ".attn.c_attn"), spec.hidden_size, 3 * spec.hidden_size),
      attention_{.eager = layers::EagerAttention(layers::SoftmaxType::model)},
      attn_c_proj_(names, name_of(index, ".attn.c_proj"), spec.hidden_size, spec.hidden_size),
      resid_dropout_{.module = names.module(name_of(index, ".attn.resid_dropout")),
                     .probability = spec.residual_dropout},
      ln_2_(names, name_of(index, ".ln_2"), spec.hidden_size, spec.layer_norm_epsilon),
      mlp_(names.module(name_of(index, ".mlp"))),
      c_fc_(names, name_of(index, ".mlp.c_fc"), spec.hidden_size, spec.inner_size),
      mlp_c_proj_(names, name_of(index, ".mlp.c_proj"), spec.inner_size, spec.hidden_size),
      act_(names.module(name_of(index, ".mlp.act")), settings.activation, spec.inner_size),
      dropout_{.module = names.module(name_of(index, ".mlp.dropout")),
               .probability = spec.residual_dropout} {}

AttentionShape Block::attention_shape(const Workspace& work, std::uint64_t seed) const {
  return {.batch = work.micro_batch,
          .sequence = work.sequence_length,
          .heads = spec_.num_heads,
          .kv_heads = spec_.num_heads,
          .head_size = spec_.head_size(),
          .scale = score_scale_,
          .dropout = spec_.attention_dropout,
          .seed = seed_at(seed, index_, Dropped::attention)};
}

Heads Block::part(const Workspace& work, const Buffer& qkv, std::int64_t index) const {
  if (!qkv) return {};
  return heads_in(work.matrix(qkv, 3 * spec_.hidden_size), index * spec_.hidden_size,
                  spec_.num_heads, spec_.head_size());
}

Buffer Block::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, const Buffer& mask,
                      std::uint64_t seed) {
  hooks.fetch(module_);
  input_ = std::move(x);
  // The residual is added in place: PyTorch's second buffer lives for this one addition, and more
  // is in use at the head in any case.
  middle_ = attention_forward(work, hooks, mask, seed);
  work.device->run(Add{middle_.tensor(work.dtype), input_.tensor(work.dtype)});
  Buffer out = mlp_forward(work, hooks, seed);
  work.device->run(Add{out.tensor(work.dtype), middle_.tensor(work.dtype)});
  hooks.release(module_);
  return out;
}

Buffer Block::attention_forward(const Workspace& work, ModuleHooks& hooks, const Buffer& mask,
                                std::uint64_t seed) {
  const AttentionShape shape = attention_shape(work, seed);
  ln_1_out_ = ln_1_.forward(work, hooks, input_, ln_1_stats_);
  hooks.fetch(attn_);
  qkv_ = c_attn_.forward(work, hooks, ln_1_out_);
  attention_.forward(work, shape, part(work, qkv_, 0), part(work, qkv_, 1), part(work, qkv_, 2),
                     &mask);
  Buffer projected = attn_c_proj_.forward(work, hooks, attention_.out);
  Buffer out = resid_dropout_.forward(
      work, hooks, seed_at(seed, index_, Dropped::attention_residual), std::move(projected));
  if (!layers::AttentionLayer::reads_inputs(work, shape)) qkv_.reset();
  if (!c_attn_.keeps_input(work, hooks)) ln_1_out_.reset();
  if (!attn_c_proj_.keeps_input(work, hooks)) attention_.forget_out(work, shape);
  hooks.release(attn_);
  return out;
}

Buffer Block::mlp_forward(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed) {
  ln_2_out_ = ln_2_.forward(work, hooks, middle_, ln_2_stats_);
  hooks.fetch(mlp_);
  activated_ = act_.forward(work, hooks, c_fc_.forward(work, hooks, ln_2_out_));
  Buffer projected = mlp_c_proj_.forward(work, hooks, activated_);
  Buffer out = dropout_.forward(work, hooks, seed_at(seed, index_, Dropped::mlp_residual),
                                std::move(projected));
  if (!c_fc_.keeps_input(work, hooks)) ln_2_out_.reset();
  if (!mlp_c_proj_.keeps_input(work, hooks) && !act_.reads_result()) activated_.reset();
  hooks.release(mlp_);
  return out;
}

Buffer Block::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_out,
                       std::uint64_t seed) {
  hooks.fetch(module_);
  Buffer d_middle = mlp_backward(work, hooks, d_out);
  work.device->run(Add{d_middle.tensor(work.dtype), d_out.tensor(work.dtype)});
  d_out.reset();
  Buffer d_input = attention_backward(work, hooks, d_middle, seed);
  work.device->run(Add{d_input.tensor(work.dtype), d_middle.tensor(work.dtype)});
  hooks.release(module_);
  return d_input;
}

Buffer Block::mlp_backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out) {
  hooks.fetch(mlp_);
  Buffer dropped = dropout_.backward(work, hooks, d_out);
  Buffer d_activated = mlp_c_proj_.backward(work, hooks, dropped ? dropped : d_out, activated_);
  dropped.reset();
  Buffer d_inner = act_.backward(work, hooks, std::move(d_activated), std::move(activated_));
  const Buffer d_norm = c_fc_.backward(work, hooks, d_inner, ln_2_out_);
  hooks.release(mlp_);
  d_inner.reset();
  ln_2_out_.reset();
  Buffer d_middle = ln_2_.backward(work, hooks, d_norm, middle_, ln_2_stats_);
  middle_.reset();
  ln_2_stats_.reset();
  return d_middle;
}

Buffer Block::attention_backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                                 std::uint64_t seed) {
  hooks.fetch(attn_);
  Buffer dropped = resid_dropout_.backward(work, hooks, d_out);
  Buffer d_attention =
      attn_c_proj_.backward(work, hooks, dropped ? dropped : d_out, attention_.out);
  dropped.reset();

  const AttentionShape shape = attention_shape(work, seed);
  const Heads q = part(work, qkv_, 0);
  const Heads k = part(work, qkv_, 1);
  const Heads v = part(work, qkv_, 2);
  attention_.begin_backward(work, shape, q, k, v, d_attention);
  Buffer d_qkv = work.activation(3 * spec_.hidden_size);
  attention_.backward(work, shape, d_attention, q, k, v, part(work, d_qkv, 0), part(work, d_qkv, 1),
                      part(work, d_qkv, 2));
  for (Buffer* used : {&qkv_, &d_attention}) used->reset();

  const Buffer d_norm = c_attn_.backward(work, hooks, d_qkv, ln_1_out_);
  hooks.release(attn_);
  d_qkv.reset();
  ln_1_out_.reset();
  Buffer d_input = ln_1_.backward(work, hooks, d_norm, input_, ln_1_stats_);
  input_.reset();
  ln_1_stats_.reset();
  return d_input;
}

}  // namespace dstune::gpt2
