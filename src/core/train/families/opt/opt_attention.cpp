#include "core/train/families/opt/opt_attention.hpp"

#include <cmath>
#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/scale.hpp"

namespace dstune::opt {

using layers::Linear;
using layers::Workspace;

OptAttention::OptAttention(const ModelSpec& spec, const OptSettings& settings,
                           const ModelNames& names, const std::string& name)
    : heads_(spec.num_heads),
      head_size_(spec.head_size()),
      dropout_(spec.attention_dropout),
      module_(names.module(name)),
      q_proj_(names, name + ".q_proj", spec.hidden_size, spec.hidden_size,
              layers::WeightOrder::out_in, settings.has_bias),
      k_proj_(names, name + ".k_proj", spec.hidden_size, spec.hidden_size,
              layers::WeightOrder::out_in, settings.has_bias),
      v_proj_(names, name + ".v_proj", spec.hidden_size, spec.hidden_size,
              layers::WeightOrder::out_in, settings.has_bias),
      out_proj_(names, name + ".out_proj", spec.hidden_size, spec.hidden_size,
                layers::WeightOrder::out_in, settings.has_bias) {}

AttentionShape OptAttention::shape(const Workspace& work, std::uint64_t seed) const {
  return {.batch = work.micro_batch,
          .sequence = work.sequence_length,
          .heads = heads_,
          .kv_heads = heads_,
          .head_size = head_size_,
          .scale = 1,
          .dropout = dropout_,
          .seed = seed};
}

Heads OptAttention::heads(const Workspace& work, const Buffer& rows) const {
  if (!rows) return {};
  return heads_in(work.matrix(rows, heads_ * head_size_), 0, heads_, head_size_);
}

void OptAttention::scale(const Workspace& work, const Buffer& q) const {
  work.device->run(Scale{q.tensor(work.dtype), 1 / std::sqrt(static_cast<double>(head_size_))});
}

Buffer OptAttention::forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x,
                             const Buffer& mask, std::uint64_t seed) {
  const AttentionShape own = shape(work, seed);
  hooks.fetch(module_);
  q_ = q_proj_.forward(work, hooks, x);
  scale(work, q_);
  k_ = k_proj_.forward(work, hooks, x);
  v_ = v_proj_.forward(work, hooks, x);
  attention_.forward(work, own, heads(work, q_), heads(work, k_), heads(work, v_), &mask);
  Buffer out = out_proj_.forward(work, hooks, attention_.out);
  if (!out_proj_.keeps_input(work, hooks)) attention_.forget_out(work, own);
  if (!layers::AttentionLayer::reads_inputs(work, own)) {
    for (Buffer* used : {&q_, &k_, &v_}) used->reset();
  }
  hooks.release(module_);
  return out;
}

bool OptAttention::keeps_input(const Workspace& work, const ModuleHooks& hooks) const {
  return q_proj_.keeps_input(work, hooks) || k_proj_.keeps_input(work, hooks) ||
         v_proj_.keeps_input(work, hooks);
}

// The projections in the reverse of forward's order. Nothing releases the module: DeepSpeed's hook
// at the end of its backward hangs on positional arguments, of which it has none.
Buffer OptAttention::backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                              const Buffer& x, std::uint64_t seed) {
  hooks.fetch(module_);
  Buffer d_attention = out_proj_.backward(work, hooks, d_out, attention_.out);
  const AttentionShape own = shape(work, seed);
  const Heads q = heads(work, q_);
  const Heads k = heads(work, k_);
  const Heads v = heads(work, v_);
  attention_.begin_backward(work, own, q, k, v, d_attention);
  const std::int64_t h = heads_ * head_size_;
  Buffer d_q = work.activation(h);
  Buffer d_k = work.activation(h);
  Buffer d_v = work.activation(h);
  attention_.backward(work, own, d_attention, q, k, v, heads(work, d_q), heads(work, d_k),
                      heads(work, d_v));
  for (Buffer* used : {&q_, &k_, &v_, &d_attention}) used->reset();

  Buffer d_x = v_proj_.backward(work, hooks, d_v, x);
  d_v.reset();
  const auto add_to_d_x = [&](const Linear& projection, Buffer d_y) {
    const Buffer part = projection.backward(work, hooks, d_y, x);
    work.device->run(Add{d_x.tensor(work.dtype), part.tensor(work.dtype)});
  };
  add_to_d_x(k_proj_, std::move(d_k));
  scale(work, d_q);
  add_to_d_x(q_proj_, std::move(d_q));
  return d_x;
}

}  // namespace dstune::opt
