#include "core/train/layers/block.hpp"

#include <utility>

#include "core/train/layers/residual_dropout.hpp"

namespace dstune::layers {

namespace {

using module_places::in_block;
using module_places::Place;

// A block's first tensors among its twelve.
constexpr std::size_t kLn1 = 0;
constexpr std::size_t kAttentionIn = 2;
constexpr std::size_t kAttentionOut = 4;
constexpr std::size_t kLn2 = 6;
constexpr std::size_t kMlpIn = 8;
constexpr std::size_t kMlpOut = 10;
constexpr std::size_t kBlockTensors = 12;

// Two embeddings stand before the blocks.
std::size_t tensor_of(std::int64_t block, std::size_t place) {
  return 2 + kBlockTensors * static_cast<std::size_t>(block) + place;
}

// What drops out in one block; 0 is the embedding.
enum class Dropped : std::uint64_t { attention = 1, attention_residual = 2, mlp_residual = 3 };

std::uint64_t seed_at(std::uint64_t seed, std::int64_t block, Dropped place) {
  return seed_of(seed, 3 * static_cast<std::uint64_t>(block) + static_cast<std::uint64_t>(place));
}

Buffer attention_scratch(const Workspace& work, const AttentionShape& shape) {
  return make_buffer(*work.device, MemoryCategory::temporaries,
                     work.device->attention_workspace(shape), DType::fp32);
}

}  // namespace

Norm Block::norm(Place place, std::size_t first_tensor) const {
  return {in_block(index, place), tensor_of(index, first_tensor)};
}

Linear Block::linear(Place place, std::size_t first_tensor, std::int64_t in,
                     std::int64_t out) const {
  return {in_block(index, place), tensor_of(index, first_tensor), in, out};
}

AttentionShape Block::attention_shape(const Workspace& work, std::uint64_t seed) const {
  return {.batch = work.micro_batch,
          .sequence = work.sequence_length,
          .heads = work.model.num_heads,
          .head_size = work.model.head_size(),
          .dropout = work.model.attention_dropout,
          .seed = seed_at(seed, index, Dropped::attention)};
}

GeluSaved Block::gelu_saved(const Workspace& work) const {
  return {tanh.tensor(work.dtype), half_x.tensor(work.dtype), one_plus_tanh.tensor(work.dtype)};
}

Buffer Block::forward(const Workspace& work, ZeroEngine& engine, Buffer x, std::uint64_t seed) {
  engine.fetch(in_block(index, Place::block));
  input = std::move(x);
  // The residual is added in place: PyTorch's second buffer lives for this one addition, and more
  // is in use at the head in any case.
  middle = attention_forward(work, engine, seed);
  work.device->add(middle.tensor(work.dtype), input.tensor(work.dtype));
  Buffer out = mlp_forward(work, engine, seed);
  work.device->add(out.tensor(work.dtype), middle.tensor(work.dtype));
  engine.release(in_block(index, Place::block));
  return out;
}

Buffer Block::attention_forward(const Workspace& work, ZeroEngine& engine, std::uint64_t seed) {
  const std::int64_t h = work.model.hidden_size;
  ln_1_out = norm(Place::ln_1, kLn1).forward(work, engine, input, ln_1_stats);
  engine.fetch(in_block(index, Place::attn));
  qkv = linear(Place::c_attn, kAttentionIn, h, 3 * h).forward(work, engine, ln_1_out);
  attention = work.activation(h);
  lse = work.activation_fp32(work.model.num_heads);
  {
    const AttentionShape shape = attention_shape(work, seed);
    const Buffer scratch = attention_scratch(work, shape);
    work.device->attention(shape, work.matrix(qkv, 3 * h), lse.tensor(DType::fp32),
                           scratch.tensor(DType::fp32), work.matrix(attention, h));
  }
  Buffer projected =
      linear(Place::attn_c_proj, kAttentionOut, h, h).forward(work, engine, attention);
  Buffer out = inside(engine, in_block(index, Place::resid_dropout), [&] {
    return drop(work, work.model.residual_dropout,
                seed_at(seed, index, Dropped::attention_residual), std::move(projected),
                attention_mask);
  });
  engine.release(in_block(index, Place::attn));
  return out;
}

Buffer Block::mlp_forward(const Workspace& work, ZeroEngine& engine, std::uint64_t seed) {
  const std::int64_t h = work.model.hidden_size;
  const std::int64_t f = work.model.inner_size;
  ln_2_out = norm(Place::ln_2, kLn2).forward(work, engine, middle, ln_2_stats);
  engine.fetch(in_block(index, Place::mlp));
  inner = linear(Place::c_fc, kMlpIn, h, f).forward(work, engine, ln_2_out);
  engine.fetch(in_block(index, Place::act));
  tanh = work.activation(f);
  half_x = work.activation(f);
  one_plus_tanh = work.activation(f);
  activated = work.activation(f);
  work.device->gelu_new(inner.tensor(work.dtype), gelu_saved(work), activated.tensor(work.dtype));
  engine.release(in_block(index, Place::act));
  Buffer projected = linear(Place::mlp_c_proj, kMlpOut, f, h).forward(work, engine, activated);
  Buffer out = inside(engine, in_block(index, Place::dropout), [&] {
    return drop(work, work.model.residual_dropout, seed_at(seed, index, Dropped::mlp_residual),
                std::move(projected), mlp_mask);
  });
  engine.release(in_block(index, Place::mlp));
  return out;
}

Buffer Block::backward(const Workspace& work, ZeroEngine& engine, Buffer d_out,
                       std::uint64_t seed) {
  engine.fetch(in_block(index, Place::block));
  Buffer d_middle = mlp_backward(work, engine, d_out);
  work.device->add(d_middle.tensor(work.dtype), d_out.tensor(work.dtype));
  d_out.reset();
  Buffer d_input = attention_backward(work, engine, d_middle, seed);
  work.device->add(d_input.tensor(work.dtype), d_middle.tensor(work.dtype));
  engine.release(in_block(index, Place::block));
  return d_input;
}

Buffer Block::mlp_backward(const Workspace& work, ZeroEngine& engine, const Buffer& d_out) {
  const std::int64_t h = work.model.hidden_size;
  const std::int64_t f = work.model.inner_size;
  engine.fetch(in_block(index, Place::mlp));
  Buffer dropped = inside(engine, in_block(index, Place::dropout), [&] {
    return mlp_mask ? drop_backward(work, work.model.residual_dropout, d_out, mlp_mask) : Buffer{};
  });
  Buffer d_activated = linear(Place::mlp_c_proj, kMlpOut, f, h)
                           .backward(work, engine, dropped ? dropped : d_out, activated);
  dropped.reset();
  activated.reset();

  engine.fetch(in_block(index, Place::act));
  Buffer d_inner = work.activation(f);
  work.device->gelu_new_backward(d_activated.tensor(work.dtype), inner.tensor(work.dtype),
                                 gelu_saved(work), d_inner.tensor(work.dtype));
  for (Buffer* used : {&inner, &tanh, &half_x, &one_plus_tanh, &d_activated}) used->reset();
  engine.release(in_block(index, Place::act));

  const Buffer d_norm = linear(Place::c_fc, kMlpIn, h, f).backward(work, engine, d_inner, ln_2_out);
  engine.release(in_block(index, Place::mlp));
  d_inner.reset();
  ln_2_out.reset();
  Buffer d_middle = norm(Place::ln_2, kLn2).backward(work, engine, d_norm, middle, ln_2_stats);
  middle.reset();
  ln_2_stats.reset();
  return d_middle;
}

Buffer Block::attention_backward(const Workspace& work, ZeroEngine& engine, const Buffer& d_out,
                                 std::uint64_t seed) {
  const std::int64_t h = work.model.hidden_size;
  engine.fetch(in_block(index, Place::attn));
  Buffer dropped = inside(engine, in_block(index, Place::resid_dropout), [&] {
    return attention_mask ? drop_backward(work, work.model.residual_dropout, d_out, attention_mask)
                          : Buffer{};
  });
  Buffer d_attention = linear(Place::attn_c_proj, kAttentionOut, h, h)
                           .backward(work, engine, dropped ? dropped : d_out, attention);
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
      linear(Place::c_attn, kAttentionIn, h, 3 * h).backward(work, engine, d_qkv, ln_1_out);
  engine.release(in_block(index, Place::attn));
  d_qkv.reset();
  ln_1_out.reset();
  Buffer d_input = norm(Place::ln_1, kLn1).backward(work, engine, d_norm, input, ln_1_stats);
  input.reset();
  ln_1_stats.reset();
  return d_input;
}

}  // namespace dstune::layers
