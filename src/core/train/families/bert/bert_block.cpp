#include "core/train/families/bert/bert_block.hpp"

#include <utility>

#include "core/base/text.hpp"
#include "core/device/operations/add.hpp"
#include "core/train/families/bert/bert_seeds.hpp"

namespace dstune::bert {

namespace {

using layers::Linear;
using layers::Workspace;

Linear projection(const ModelSpec& spec, const ModelNames& names, const std::string& name) {
  return {names, name, spec.hidden_size, spec.hidden_size, layers::WeightOrder::out_in};
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
      query_(projection(spec, names, concat(name, called.query_key_value[0]))),
      key_(projection(spec, names, concat(name, called.query_key_value[1]))),
      value_(projection(spec, names, concat(name, called.query_key_value[2]))),
      attention_{.eager = layers::EagerAttention(layers::SoftmaxType::model)},
      tail_(spec, names, index, called, name, settings_of(spec).activation) {}

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
  const auto keeps = [&](const Linear& linear) { return linear.keeps_input(work, hooks); };
  saves_input_ = keeps(query_) || keeps(key_) || keeps(value_);
  const bool is_read_again = !layers::is_eager(work, attention_shape(work, seed));
  return tail_.forward(work, hooks, attention_.out, is_read_again, input_, seed);
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

Buffer EncoderBlock::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_out,
                              std::uint64_t seed) {
  BlockTail::Gradients d = tail_.backward(work, hooks, std::move(d_out), attention_.out);
  scopes_.backward(hooks, kProject,
                   [&] { attend_backward(work, hooks, std::move(d.attended), d.input, seed); });
  return std::move(d.input);
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
    work.device->run(Add{d_input.tensor(work.dtype), d_x.tensor(work.dtype)});
  };
  project_backward(value_, d_v);
  project_backward(key_, d_k);
  project_backward(query_, d_q);
  input_.reset();
}

}  // namespace dstune::bert
