#include "core/train/families/phi3/phi3_attention.hpp"

#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/copy.hpp"
#include "core/device/operations/fill.hpp"
#include "core/device/operations/rows.hpp"

namespace dstune::llama {

using layers::Rotary;
using layers::Workspace;

Phi3Attention::Phi3Attention(const ModelSpec& spec, const LlamaSettings& settings,
                             const ModelNames& names, const std::string& name, std::int64_t layer)
    : shape_{.heads = spec.num_heads,
             .kv_heads = settings.kv_heads,
             .head_size = settings.head_size,
             .window = settings.window_of(layer),
             .dropout = spec.attention_dropout},
      module_(names.module(name)),
      o_proj_(names, name + ".o_proj", columns(queries()), spec.hidden_size,
              layers::WeightOrder::out_in, false),
      qkv_proj_(names, name + ".qkv_proj", spec.hidden_size, width(), layers::WeightOrder::out_in,
                false) {}

AttentionShape Phi3Attention::shape(const Workspace& work, std::uint64_t seed) const {
  AttentionShape result = shape_;
  result.batch = work.micro_batch;
  result.sequence = work.sequence_length;
  result.seed = seed;
  return result;
}

Heads Phi3Attention::within(const Workspace& work, const Buffer& product, const Part& part) const {
  if (!product) return {};
  return heads_in(work.matrix(product, width()), part.first_column, part.heads, shape_.head_size);
}

Heads Phi3Attention::dense(const Workspace& work, const Buffer& heads, const Part& part) const {
  if (!heads) return {};
  return heads_in(work.matrix(heads, columns(part)), 0, part.heads, shape_.head_size);
}

Heads Phi3Attention::v(const Workspace& work) const {
  return v_ ? dense(work, v_, values()) : within(work, product_, values());
}

Buffer Phi3Attention::turned(const Workspace& work, const Rotary& rotary, const Part& part) const {
  const Heads in = within(work, product_, part);
  return rotary.turn(work, in.matrix, part.heads, shape_.head_size, in.stride);
}

Buffer Phi3Attention::forward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                              const Buffer& mask, Buffer x, std::uint64_t seed) {
  hooks.fetch(module_);
  input_ = std::move(x);
  product_ = qkv_proj_.forward(work, hooks, input_);
  q_ = turned(work, rotary, queries());
  k_ = turned(work, rotary, keys());
  attend(work, mask, seed);
  Buffer out = o_proj_.forward(work, hooks, attended());
  if (!qkv_proj_.keeps_input(work, hooks)) input_.reset();
  if (!o_proj_.keeps_input(work, hooks)) {
    by_tokens_.reset();
    attention_.forget_out(work, shape(work, seed));
  }
  if (!layers::AttentionLayer::reads_inputs(work, shape(work, seed))) {
    for (Buffer* used : {&product_, &q_, &k_}) used->reset();
  }
  hooks.release(module_);
  return out;
}

void Phi3Attention::attend(const Workspace& work, const Buffer& mask, std::uint64_t seed) {
  attention_.forward(work, shape(work, seed), dense(work, q_, queries()), dense(work, k_, keys()),
                     v(work), &mask);
  if (work.attention == AttentionKind::sdpa) {
    by_tokens_ = work.activation(columns(queries()));
    work.device->run(Copy{attention_.out.tensor(work.dtype), by_tokens_.tensor(work.dtype)});
  }
  if (attention_.repeated_v) leave_repeated(work);
}

// PyTorch keeps the repeated values and with them nothing of the product.
void Phi3Attention::leave_repeated(const Workspace& work) {
  const Heads from = v(work);
  v_ = work.activation(columns(values()));
  work.device->run(CopyRows{from.matrix, work.matrix(v_, columns(values()))});
  product_.reset();
}

Buffer Phi3Attention::backward(const Workspace& work, ModuleHooks& hooks, const Rotary& rotary,
                               const Buffer& d_out, std::uint64_t seed) {
  hooks.fetch(module_);
  Buffer d_attention = o_proj_.backward(work, hooks, d_out, attended());
  by_tokens_.reset();
  const Buffer d_product = product_gradient(work, rotary, std::move(d_attention), seed);
  Buffer d_x = qkv_proj_.backward(work, hooks, d_product, input_);
  input_.reset();
  return d_x;
}

// Each part's gradient becomes one of the whole, in the order of autograd: slices, not a split.
Buffer Phi3Attention::product_gradient(const Workspace& work, const Rotary& rotary,
                                       Buffer d_attention, std::uint64_t seed) {
  const AttentionShape own = shape(work, seed);
  const Heads q = dense(work, q_, queries());
  const Heads k = dense(work, k_, keys());
  attention_.begin_backward(work, own, q, k, v(work), d_attention);
  Buffer d_q = work.activation(columns(queries()));
  Buffer d_k = work.activation(columns(keys()));
  Buffer d_v = work.activation(columns(values()));
  attention_.backward(work, own, d_attention, q, k, v(work), dense(work, d_q, queries()),
                      dense(work, d_k, keys()), dense(work, d_v, values()));
  for (Buffer* used : {&q_, &k_, &product_, &v_, &d_attention}) used->reset();
  d_k = rotary.turn_back(work, d_k, shape_.kv_heads, shape_.head_size);
  d_q = rotary.turn_back(work, d_q, shape_.heads, shape_.head_size);

  Buffer d_product = widened(work, std::move(d_v), values());
  const auto add = [&](Buffer d_part, const Part& part) {
    const Buffer term = widened(work, std::move(d_part), part);
    work.device->run(Add{d_product.tensor(work.dtype), term.tensor(work.dtype)});
  };
  add(std::move(d_k), keys());
  add(std::move(d_q), queries());
  return d_product;
}

Buffer Phi3Attention::widened(const Workspace& work, Buffer d_part, const Part& part) const {
  Buffer whole = work.activation(width());
  work.device->run(FillZero{whole.tensor(work.dtype)});
  work.device->run(CopyRows{work.matrix(d_part, columns(part)), within(work, whole, part).matrix});
  d_part.reset();
  return whole;
}

}  // namespace dstune::llama
