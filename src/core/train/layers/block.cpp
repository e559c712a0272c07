#include "core/train/layers/block.hpp"

#include <utility>

#include "core/train/layers/linear.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/residual_dropout.hpp"

namespace dstune::layers {

namespace {

// The order of a block's modules in ModelParameters.
constexpr std::size_t kLn1 = 0;
constexpr std::size_t kAttentionIn = 1;
constexpr std::size_t kAttentionOut = 2;
constexpr std::size_t kLn2 = 3;
constexpr std::size_t kMlpIn = 4;
constexpr std::size_t kMlpOut = 5;
constexpr std::size_t kBlockModules = 6;

// The places of one block that drop out; 0 is the embedding.
enum class Place : std::uint64_t { attention = 1, attention_residual = 2, mlp_residual = 3 };

std::uint64_t seed_at(std::uint64_t seed, std::int64_t block, Place place) {
  return seed_of(seed, 3 * static_cast<std::uint64_t>(block) + static_cast<std::uint64_t>(place));
}

Buffer attention_scratch(const Workspace& work, const AttentionShape& shape) {
  return make_buffer(*work.device, MemoryCategory::temporaries,
                     work.device->attention_workspace(shape), DType::fp32);
}

}  // namespace

// Two embeddings stand before the blocks.
std::size_t Block::module(std::size_t place) const {
  return 2 + kBlockModules * static_cast<std::size_t>(index) + place;
}

AttentionShape Block::attention_shape(const Workspace& work, std::uint64_t seed) const {
  return {.batch = work.micro_batch,
          .sequence = work.sequence_length,
          .heads = work.model.num_heads,
          .head_size = work.model.head_size(),
          .dropout = work.model.attention_dropout,
          .seed = seed_at(seed, index, Place::attention)};
}

GeluSaved Block::gelu_saved(const Workspace& work) const {
  return {tanh.tensor(work.dtype), half_x.tensor(work.dtype), one_plus_tanh.tensor(work.dtype)};
}

Buffer Block::forward(const Workspace& work, ZeroEngine& engine, Buffer x, std::uint64_t seed) {
  input = std::move(x);
  // The residual is added in place: PyTorch's second buffer lives for this one addition, and more
  // is in use at the head in any case.
  middle = attention_forward(work, engine, seed);
  work.device->add(middle.tensor(work.dtype), input.tensor(work.dtype));
  Buffer out = mlp_forward(work, engine, seed);
  work.device->add(out.tensor(work.dtype), middle.tensor(work.dtype));
  return out;
}

Buffer Block::attention_forward(const Workspace& work, ZeroEngine& engine, std::uint64_t seed) {
  const std::int64_t h = work.model.hidden_size;
  ln_1_out = Norm{module(kLn1)}.forward(work, engine, input, ln_1_stats);
  qkv = Linear{module(kAttentionIn), h, 3 * h}.forward(work, engine, ln_1_out);
  attention = work.activation(h);
  lse = work.activation_fp32(work.model.num_heads);
  {
    const AttentionShape shape = attention_shape(work, seed);
    const Buffer scratch = attention_scratch(work, shape);
    work.device->attention(shape, work.matrix(qkv, 3 * h), lse.tensor(DType::fp32),
                           scratch.tensor(DType::fp32), work.matrix(attention, h));
  }
  Buffer projected = Linear{module(kAttentionOut), h, h}.forward(work, engine, attention);
  return drop(work, work.model.residual_dropout, seed_at(seed, index, Place::attention_residual),
              std::move(projected), attention_mask);
}

Buffer Block::mlp_forward(const Workspace& work, ZeroEngine& engine, std::uint64_t seed) {
  const std::int64_t h = work.model.hidden_size;
  const std::int64_t f = work.model.inner_size;
  ln_2_out = Norm{module(kLn2)}.forward(work, engine, middle, ln_2_stats);
  inner = Linear{module(kMlpIn), h, f}.forward(work, engine, ln_2_out);
  tanh = work.activation(f);
  half_x = work.activation(f);
  one_plus_tanh = work.activation(f);
  activated = work.activation(f);
  work.device->gelu_new(inner.tensor(work.dtype), gelu_saved(work), activated.tensor(work.dtype));
  Buffer projected = Linear{module(kMlpOut), f, h}.forward(work, engine, activated);
  return drop(work, work.model.residual_dropout, seed_at(seed, index, Place::mlp_residual),
              std::move(projected), mlp_mask);
}

Buffer Block::backward(const Workspace& work, ZeroEngine& engine, Buffer d_out,
                       std::uint64_t seed) {
  Buffer d_middle = mlp_backward(work, engine, d_out);
  work.device->add(d_middle.tensor(work.dtype), d_out.tensor(work.dtype));
  d_out.reset();
  Buffer d_input = attention_backward(work, engine, d_middle, seed);
  work.device->add(d_input.tensor(work.dtype), d_middle.tensor(work.dtype));
  return d_input;
}

Buffer Block::mlp_backward(const Workspace& work, ZeroEngine& engine, const Buffer& d_out) {
  const std::int64_t h = work.model.hidden_size;
  const std::int64_t f = work.model.inner_size;
  Buffer dropped;
  if (mlp_mask) dropped = drop_backward(work, work.model.residual_dropout, d_out, mlp_mask);
  Buffer d_activated =
      Linear{module(kMlpOut), f, h}.backward(work, engine, dropped ? dropped : d_out, activated);
  dropped.reset();
  activated.reset();

  Buffer d_inner = work.activation(f);
  work.device->gelu_new_backward(d_activated.tensor(work.dtype), inner.tensor(work.dtype),
                                 gelu_saved(work), d_inner.tensor(work.dtype));
  for (Buffer* used : {&inner, &tanh, &half_x, &one_plus_tanh, &d_activated}) used->reset();

  const Buffer d_norm = Linear{module(kMlpIn), h, f}.backward(work, engine, d_inner, ln_2_out);
  d_inner.reset();
  ln_2_out.reset();
  Buffer d_middle = Norm{module(kLn2)}.backward(work, engine, d_norm, middle, ln_2_stats);
  middle.reset();
  ln_2_stats.reset();
  return d_middle;
}

Buffer Block::attention_backward(const Workspace& work, ZeroEngine& engine, const Buffer& d_out,
                                 std::uint64_t seed) {
  const std::int64_t h = work.model.hidden_size;
  Buffer dropped;
  if (attention_mask) {
    dropped = drop_backward(work, work.model.residual_dropout, d_out, attention_mask);
  }
  Buffer d_attention = Linear{module(kAttentionOut), h, h}.backward(
      work, engine, dropped ? dropped : d_out, attention);
  dropped.reset();

  Buffer d_qkv = work.activation(3 * h);
  {
    const AttentionShape shape = attention_shape(work, seed);
    const Buffer scratch = attention_scratch(work, shape);
    work.device->attention_backward(shape, work.matrix(d_attention, h), work.matrix(qkv, 3 * h),
                                    work.matrix(attention, h), lse.tensor(DType::fp32),
                                    scratch.tensor(DType::fp32), work.matrix(d_qkv, 3 * h));
  }
  for (Buffer* used : {&attention, &lse, &qkv, &d_attention}) used->reset();

  const Buffer d_norm =
      Linear{module(kAttentionIn), h, 3 * h}.backward(work, engine, d_qkv, ln_1_out);
  d_qkv.reset();
  ln_1_out.reset();
  Buffer d_input = Norm{module(kLn1)}.backward(work, engine, d_norm, input, ln_1_stats);
  input.reset();
  ln_1_stats.reset();
  return d_input;
}

}  // namespace dstune::layers
