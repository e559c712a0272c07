#include "core/train/families/llama/llama_attention.hpp"

#include <utility>

#include "core/device/operations/add.hpp"

namespace dstune::llama {

using layers::Linear;
using layers::RmsNormLayer;
using layers::Rotary;
using layers::WeightOrder;
using layers::Workspace;

namespace {

std::optional<RmsNormLayer> head_norm(const ModelSpec& spec, const LlamaSettings& settings,
                                      const ModelNames& names, const std::string& name,
                                      std::int64_t heads) {
  if (!settings.head_norms) return std::nullopt;
  return RmsNormLayer(names, name, settings.head_size, spec.layer_norm_epsilon, heads,
                      settings.is_gemma ? 1 : 0);
}

Linear linear(const ModelNames& names, const std::string& name, std::int64_t in, std::int64_t out,
              bool has_bias) {
  return {names, name, in, out, WeightOrder::out_in, has_bias};
}

}  // namespace

LlamaAttention::LlamaAttention(const ModelSpec& spec, const LlamaSettings& settings,
                               const ModelNames& names, const std::string& name, std::int64_t layer)
    : head_size_(settings.head_size),
      norms_come_late_(settings.is_gemma),
      shape_{.heads = spec.num_heads,
             .kv_heads = settings.kv_heads,
             .head_size = settings.head_size,
             .window = settings.window_of(layer),
             .scale = settings.score_scale,
             .softcap = settings.score_cap,
             .dropout = spec.attention_dropout},
      module_(names.module(name)),
      q_{linear(names, name + ".q_proj", spec.hidden_size, spec.num_heads * settings.head_size,
                settings.input_biases),
         head_norm(spec, settings, names, name + ".q_norm", spec.num_heads), spec.num_heads},
      k_{linear(names, name + ".k_proj", spec.hidden_size, settings.kv_heads * settings.head_size,
                settings.input_biases),
         head_norm(spec, settings, names, name + ".k_norm", settings.kv_heads), settings.kv_heads},
      v_proj_(linear(names, name + ".v_proj", spec.hidden_size,
                     settings.kv_heads * settings.head_size, settings.input_biases)),
      o_proj_(linear(names, name + ".o_proj", spec.num_heads * settings.head_size, spec.hidden_size,
                     settings.output_bias)) {}

AttentionShape LlamaAttention::shape(const Workspace& work, std::uint64_t seed) const {
  AttentionShape result = shape_;
  result.batch = work.micro_batch;
  result.sequence = work.sequence_length;
  result.seed = seed;
  return result;
}

Heads LlamaAttention::heads_of(const Workspace& work, const Buffer& buffer,
                               std::int64_t heads) const {
  return heads_in(work.matrix(buffer, heads * head_size_), 0, heads, head_size_);
}

Buffer LlamaAttention::normed(const Workspace& work, ModuleHooks& hooks, Projection& part,
                              Buffer projected) const {
  if (!part.norm) return projected;
  Buffer normed = part.norm->forward(work, hooks, projected);
  if (RmsNormLayer::keeps_input(work)) part.projected = std::move(projected);
  return normed;
}

void LlamaAttention::turn(const Workspace& work, const Rotary& rotary, Projection& part,
                          const Buffer& normed) const {
  part.turned = rotary.turn(work, work.matrix(normed, part.heads * head_size_), part.heads,
                            head_size_, head_size_);
}

Buffer LlamaAttention::forward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                               const Buffer& mask, Buffer x, std::uint64_t seed) {
  hooks.fetch(module_);
  input_ = std::move(x);
  {
    Buffer q = q_.linear.forward(work, hooks, input_);
    if (!norms_come_late_) q = normed(work, hooks, q_, std::move(q));
    Buffer k = k_.linear.forward(work, hooks, input_);
    if (!norms_come_late_) k = normed(work, hooks, k_, std::move(k));
    v_ = v_proj_.forward(work, hooks, input_);
    if (norms_come_late_) {
      q = normed(work, hooks, q_, std::move(q));
      k = normed(work, hooks, k_, std::move(k));
    }
    turn(work, rotary, q_, q);
    turn(work, rotary, k_, k);
  }
  attend(work, seed, mask);
  Buffer out = o_proj_.forward(work, hooks, attention_.out);
  const auto keeps = [&](const Linear& linear) { return linear.keeps_input(work, hooks); };
  if (!keeps(q_.linear) && !keeps(k_.linear) && !keeps(v_proj_)) input_.reset();
  if (!keeps(o_proj_)) attention_.forget_out(work, shape(work, seed));
  if (!layers::AttentionLayer::reads_inputs(work, shape(work, seed))) {
    for (Buffer* used : {&q_.turned, &k_.turned, &v_}) used->reset();
  }
  hooks.release(module_);
  return out;
}

void LlamaAttention::attend(const Workspace& work, std::uint64_t seed, const Buffer& mask) {
  attention_.forward(work, shape(work, seed), heads_of(work, q_.turned, q_.heads),
                     heads_of(work, k_.turned, k_.heads), heads_of(work, v_, k_.heads), &mask);
}

void LlamaAttention::attend_back(const Workspace& work, std::uint64_t seed, Buffer d_out,
                                 Buffer& d_q, Buffer& d_k, Buffer& d_v) {
  const AttentionShape own = shape(work, seed);
  const Heads q = heads_of(work, q_.turned, q_.heads);
  const Heads k = heads_of(work, k_.turned, k_.heads);
  const Heads v = heads_of(work, v_, k_.heads);
  attention_.begin_backward(work, own, q, k, v, d_out);
  d_q = work.activation(q_.heads * head_size_);
  d_k = work.activation(k_.heads * head_size_);
  d_v = work.activation(k_.heads * head_size_);
  attention_.backward(work, own, d_out, q, k, v, heads_of(work, d_q, q_.heads),
                      heads_of(work, d_k, k_.heads), heads_of(work, d_v, k_.heads));
  for (Buffer* used : {&q_.turned, &k_.turned, &v_}) used->reset();
}

Buffer LlamaAttention::turn_back(const Workspace& work, const Rotary& rotary,
                                 const Projection& part, const Buffer& d_turned) const {
  return rotary.turn_back(work, d_turned, part.heads, head_size_);
}

Buffer LlamaAttention::norm_back(const Workspace& work, ModuleHooks& hooks, Projection& part,
                                 Buffer d_heads) const {
  if (!part.norm) return d_heads;
  d_heads = part.norm->backward(work, hooks, std::move(d_heads), part.projected);
  part.projected.reset();
  return d_heads;
}

// Adds to d_x.
void LlamaAttention::project_back(const Workspace& work, ModuleHooks& hooks, Projection& part,
                                  Buffer d_heads, const Buffer& d_x) const {
  const Buffer term = part.linear.backward(work, hooks, d_heads, input_);
  d_heads.reset();
  work.device->run(Add{d_x.tensor(work.dtype), term.tensor(work.dtype)});
}

// In the order of autograd, which goes back to what ran last: the turns of k and q, then v, k, q,
// with the norms where they were. Nothing releases the module: DeepSpeed's hook for that hangs on
// positional tensors, and there are none.
Buffer LlamaAttention::backward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                                const Buffer& d_out, std::uint64_t seed) {
  hooks.fetch(module_);
  Buffer d_attention = o_proj_.backward(work, hooks, d_out, attention_.out);
  Buffer d_q;
  Buffer d_k;
  Buffer d_v;
  attend_back(work, seed, std::move(d_attention), d_q, d_k, d_v);
  d_k = turn_back(work, rotary, k_, d_k);
  d_q = turn_back(work, rotary, q_, d_q);
  if (norms_come_late_) {
    d_k = norm_back(work, hooks, k_, std::move(d_k));
    d_q = norm_back(work, hooks, q_, std::move(d_q));
  }
  Buffer d_x = v_proj_.backward(work, hooks, d_v, input_);
  d_v.reset();
  if (!norms_come_late_) d_k = norm_back(work, hooks, k_, std::move(d_k));
  project_back(work, hooks, k_, std::move(d_k), d_x);
  if (!norms_come_late_) d_q = norm_back(work, hooks, q_, std::move(d_q));
  project_back(work, hooks, q_, std::move(d_q), d_x);
  input_.reset();
  return d_x;
}

}  // namespace dstune::llama
