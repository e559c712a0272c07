#include "core/train/families/bert_block.hpp"

#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"
#include "core/train/families/bert_seeds.hpp"

namespace dstune::bert {

namespace {

using layers::Linear;
using layers::Workspace;

Linear linear(const ModelNames& names, const std::string& name, std::int64_t in, std::int64_t out) {
  return {names, name, in, out, layers::WeightOrder::out_in};
}

std::optional<layers::DropoutLayer> dropout_if(const ModelNames& names, const std::string& block,
                                               std::string_view name, double probability) {
  if (name.empty()) return std::nullopt;
  return layers::DropoutLayer{.module = names.module(concat(block, name)),
                              .probability = probability};
}

void add(const Workspace& work, const Buffer& sum, const Buffer& more) {
  work.device->run(Add{sum.tensor(work.dtype), more.tensor(work.dtype)});
}

}  // namespace

EncoderBlock::EncoderBlock(const ModelSpec& spec, const ModelNames& names, std::int64_t index)
    : EncoderBlock(spec, names, index, names_of(kin_of(spec)).block,
                   concat(names_of(kin_of(spec)).block.stem, index)) {}

EncoderBlock::EncoderBlock(const ModelSpec& spec, const ModelNames& names, std::int64_t index,
                           const BlockNames& called, const std::string& name)
    : spec_(spec),
      index_(index),
      scopes_(names, name, called.scopes),
      query_(linear(names, concat(name, called.query_key_value[0]), spec.hidden_size,
                    spec.hidden_size)),
      key_(linear(names, concat(name, called.query_key_value[1]), spec.hidden_size,
                  spec.hidden_size)),
      value_(linear(names, concat(name, called.query_key_value[2]), spec.hidden_size,
                    spec.hidden_size)),
      out_(linear(names, concat(name, called.out), spec.hidden_size, spec.hidden_size)),
      out_dropout_(dropout_if(names, name, called.out_dropout, spec.residual_dropout)),
      norm_(names, concat(name, called.norm), spec.hidden_size, spec.layer_norm_epsilon),
      inner_(linear(names, concat(name, called.inner), spec.hidden_size, spec.inner_size)),
      activation_(names.module(concat(name, called.activation)), settings_of(spec).activation,
                  spec.inner_size),
      outer_(linear(names, concat(name, called.outer), spec.inner_size, spec.hidden_size)),
      dropout_{.module = names.module(concat(name, called.dropout)),
               .probability = spec.residual_dropout},
      last_norm_(names, concat(name, called.last_norm), spec.hidden_size, spec.layer_norm_epsilon),
      attention_{.eager = layers::EagerAttention(layers::SoftmaxType::model)} {}

AttentionShape EncoderBlock::attention_shape(const Workspace& work, std::uint64_t seed) const {
  return {.batch = work.micro_batch,
          .sequence = work.sequence_length,
          .heads = spec_.num_heads,
          .kv_heads = spec_.num_heads,
          .head_size = spec_.head_size(),
          .causal = false,
          .dropout = spec_.attention_dropout,
          .seed = seed_at(seed, index_, Dropped::attention)};
}

Heads EncoderBlock::heads(const Workspace& work, const Buffer& rows) const {
  if (!rows) return {};
  return {work.matrix(rows, spec_.hidden_size), spec_.head_size()};
}

Buffer EncoderBlock::forward(const Workspace& work, ModuleHooks& hooks, Buffer x,
                             std::uint64_t seed) {
  input_ = std::move(x);
  scopes_.forward(hooks, kProject, [&] { attend(work, hooks, seed); });
  scopes_.forward(hooks, kOut, [&] { project_out(work, hooks, seed); });
  scopes_.forward(hooks, kNorm, [&] {
    add(work, sum_, input_);
    middle_ = norm_.forward(work, hooks, sum_, norm_stats_);
    const auto keeps = [&](const Linear& linear) { return linear.keeps_input(work, hooks); };
    saves_input_ = keeps(query_) || keeps(key_) || keeps(value_);
    if (!keeps(out_)) attention_.forget_out(work, attention_shape(work, seed));
  });
  return mlp_forward(work, hooks, seed);
}

void EncoderBlock::attend(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed) {
  q_ = query_.forward(work, hooks, input_);
  k_ = key_.forward(work, hooks, input_);
  v_ = value_.forward(work, hooks, input_);
  const AttentionShape shape = attention_shape(work, seed);
  attention_.forward(work, shape, heads(work, q_), heads(work, k_), heads(work, v_));
  if (layers::AttentionLayer::reads_inputs(work, shape)) return;
  for (Buffer* unread : {&q_, &k_, &v_}) unread->reset();
}

void EncoderBlock::project_out(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed) {
  sum_ = out_.forward(work, hooks, attention_.out);
  if (!out_dropout_) return;
  sum_ = out_dropout_->forward(work, hooks, seed_at(seed, index_, Dropped::out), std::move(sum_));
}

Buffer EncoderBlock::mlp_forward(const Workspace& work, ModuleHooks& hooks, std::uint64_t seed) {
  scopes_.forward(hooks, kInner, [&] {
    activated_ = activation_.forward(work, hooks, inner_.forward(work, hooks, middle_));
  });
  Buffer projected;
  scopes_.forward(hooks, kOuter, [&] {
    projected = outer_.forward(work, hooks, activated_);
    projected =
        dropout_.forward(work, hooks, seed_at(seed, index_, Dropped::mlp), std::move(projected));
  });
  // All three are there at once: where a checkpoint runs again, that is the peak.
  Buffer out;
  scopes_.forward(hooks, kLastNorm, [&] {
    last_sum_ = work.activation(spec_.hidden_size);
    work.device->run(AddBroadcast{.a = work.matrix(projected, spec_.hidden_size),
                                  .b = work.matrix(middle_, spec_.hidden_size),
                                  .out = work.matrix(last_sum_, spec_.hidden_size)});
    out = last_norm_.forward(work, hooks, last_sum_, last_norm_stats_);
    if (!inner_.keeps_input(work, hooks)) middle_.reset();
    if (!outer_.keeps_input(work, hooks) && !activation_.reads_result()) activated_.reset();
  });
  return out;
}

Buffer EncoderBlock::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_out,
                              std::uint64_t seed) {
  Buffer d_middle = mlp_backward(work, hooks, std::move(d_out));
  Buffer d_input;
  scopes_.backward(hooks, kNorm, [&] {
    d_input = norm_.backward(work, hooks, d_middle, sum_, norm_stats_);
    for (Buffer* used : {&sum_, &norm_stats_, &d_middle}) used->reset();
  });
  Buffer d_attention;
  scopes_.backward(hooks, kOut, [&] { d_attention = out_backward(work, hooks, d_input); });
  scopes_.backward(hooks, kProject,
                   [&] { attend_backward(work, hooks, std::move(d_attention), d_input, seed); });
  return d_input;
}

Buffer EncoderBlock::mlp_backward(const Workspace& work, ModuleHooks& hooks, Buffer d_out) {
  Buffer d_sum;
  scopes_.backward(hooks, kLastNorm, [&] {
    d_sum = last_norm_.backward(work, hooks, d_out, last_sum_, last_norm_stats_);
    for (Buffer* used : {&last_sum_, &last_norm_stats_, &d_out}) used->reset();
  });
  Buffer d_activated;
  scopes_.backward(hooks, kOuter, [&] {
    const Buffer dropped = dropout_.backward(work, hooks, d_sum);
    d_activated = outer_.backward(work, hooks, dropped ? dropped : d_sum, activated_);
  });
  scopes_.backward(hooks, kInner, [&] {
    Buffer d_inner =
        activation_.backward(work, hooks, std::move(d_activated), std::move(activated_));
    const Buffer d_middle = inner_.backward(work, hooks, d_inner, middle_);
    d_inner.reset();
    middle_.reset();
    add(work, d_sum, d_middle);
  });
  return d_sum;
}

Buffer EncoderBlock::out_backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_sum) {
  Buffer dropped;
  if (out_dropout_) dropped = out_dropout_->backward(work, hooks, d_sum);
  return out_.backward(work, hooks, dropped ? dropped : d_sum, attention_.out);
}

// In the order of autograd: the last projection of forward is the first.
void EncoderBlock::attend_backward(const Workspace& work, ModuleHooks& hooks, Buffer d_attention,
                                   const Buffer& d_input, std::uint64_t seed) {
  const AttentionShape shape = attention_shape(work, seed);
  const Heads q = heads(work, q_);
  const Heads k = heads(work, k_);
  const Heads v = heads(work, v_);
  attention_.begin_backward(work, shape, q, k, v, d_attention);
  Buffer d_q = work.activation(spec_.hidden_size);
  Buffer d_k = work.activation(spec_.hidden_size);
  Buffer d_v = work.activation(spec_.hidden_size);
  attention_.backward(work, shape, d_attention, q, k, v, heads(work, d_q), heads(work, d_k),
                      heads(work, d_v));
  for (Buffer* used : {&q_, &k_, &v_, &d_attention}) used->reset();
  const auto project_backward = [&](const Linear& projection, Buffer& d_y) {
    const Buffer d_x = projection.backward(work, hooks, d_y, input_);
    d_y.reset();
    add(work, d_input, d_x);
  };
  project_backward(value_, d_v);
  project_backward(key_, d_k);
  project_backward(query_, d_q);
  input_.reset();
}

}  // namespace dstune::bert
