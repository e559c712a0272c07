#include "core/train/families/gpt_neox/gpt_neox_attention.hpp"

#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/copy.hpp"

namespace dstune::gpt_neox {

using layers::Rotary;
using layers::Workspace;

NeoxAttention::NeoxAttention(const ModelSpec& spec, const NeoxSettings& settings,
                             const ModelNames& names, const std::string& name)
    : heads_(spec.num_heads),
      head_size_(spec.head_size()),
      dropout_(spec.attention_dropout),
      module_(names.module(name)),
      query_key_value_(names, name + ".query_key_value", spec.hidden_size, 3 * spec.hidden_size,
                       layers::WeightOrder::out_in, settings.attention_bias),
      dense_(names, name + ".dense", spec.hidden_size, spec.hidden_size,
             layers::WeightOrder::out_in, settings.attention_bias) {}

AttentionShape NeoxAttention::shape(const Workspace& work, std::uint64_t seed) const {
  return {.batch = work.micro_batch,
          .sequence = work.sequence_length,
          .heads = heads_,
          .kv_heads = heads_,
          .head_size = head_size_,
          .dropout = dropout_,
          .seed = seed};
}

Heads NeoxAttention::interleaved(const Workspace& work, const Buffer& qkv,
                                 std::int64_t part) const {
  if (!qkv) return {};
  return heads_in(work.matrix(qkv, 3 * heads_ * head_size_), part * head_size_, heads_, head_size_,
                  3 * head_size_);
}

Heads NeoxAttention::dense(const Workspace& work, const Buffer& heads) const {
  if (!heads) return {};
  return heads_in(work.matrix(heads, heads_ * head_size_), 0, heads_, head_size_);
}

Buffer NeoxAttention::forward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                              const Buffer& x, const Buffer& mask, std::uint64_t seed) {
  const AttentionShape own = shape(work, seed);
  hooks.fetch(module_);
  qkv_ = query_key_value_.forward(work, hooks, x);
  const auto turned = [&](std::int64_t part) {
    const Heads in = interleaved(work, qkv_, part);
    return rotary.turn(work, in.matrix, heads_, head_size_, in.stride);
  };
  q_ = turned(0);
  k_ = turned(1);
  attention_.forward(work, own, dense(work, q_), dense(work, k_), interleaved(work, qkv_, 2),
                     &mask);
  if (work.attention == AttentionKind::sdpa) {
    by_tokens_ = work.activation(heads_ * head_size_);
    work.device->run(Copy{attention_.out.tensor(work.dtype), by_tokens_.tensor(work.dtype)});
  }
  Buffer out = dense_.forward(work, hooks, attended());
  if (!dense_.keeps_input(work, hooks)) {
    by_tokens_.reset();
    attention_.forget_out(work, own);
  }
  if (!layers::AttentionLayer::reads_inputs(work, own)) {
    for (Buffer* used : {&qkv_, &q_, &k_}) used->reset();
  }
  hooks.release(module_);
  return out;
}

Buffer NeoxAttention::backward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                               const Buffer& d_out, const Buffer& x, std::uint64_t seed) {
  hooks.fetch(module_);
  Buffer d_attention = dense_.backward(work, hooks, d_out, attended());
  by_tokens_.reset();
  const Buffer d_qkv = product_gradient(work, rotary, std::move(d_attention), seed);
  Buffer d_x = query_key_value_.backward(work, hooks, d_qkv, x);
  hooks.release(module_);
  return d_x;
}

// Three gradients, of which two are turned back, then put side by side: torch.cat.
Buffer NeoxAttention::product_gradient(const Workspace& work, const Rotary& rotary,
                                       Buffer d_attention, std::uint64_t seed) {
  const std::int64_t h = heads_ * head_size_;
  const AttentionShape own = shape(work, seed);
  const Heads q = dense(work, q_);
  const Heads k = dense(work, k_);
  const Heads v = interleaved(work, qkv_, 2);
  attention_.begin_backward(work, own, q, k, v, d_attention);
  std::array<Buffer, 3> parts = {work.activation(h), work.activation(h), work.activation(h)};
  attention_.backward(work, own, d_attention, q, k, v, dense(work, parts[0]), dense(work, parts[1]),
                      dense(work, parts[2]));
  for (Buffer* used : {&q_, &k_, &qkv_, &d_attention}) used->reset();
  for (std::size_t part : {1U, 0U}) {
    parts.at(part) = rotary.turn_back(work, parts.at(part), heads_, head_size_);
  }
  return side_by_side(work, parts);
}

Buffer NeoxAttention::side_by_side(const Workspace& work,
                                   const std::array<Buffer, 3>& parts) const {
  const std::int64_t rows = work.rows() * heads_;
  Buffer d_qkv = work.activation(3 * heads_ * head_size_);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    // A head of one token is a row here; each row is the sum of one: a copy with strides.
    const Heads to = interleaved(work, d_qkv, static_cast<std::int64_t>(part));
    work.device->run(
        AddBroadcastBackward{as_matrix(parts.at(part).tensor(work.dtype), rows, head_size_),
                             {to.matrix.data, rows, head_size_, work.dtype, to.stride}});
  }
  return d_qkv;
}

}  // namespace dstune::gpt_neox
