#include "core/train/nn/attention/biased_attention.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include "core/device/operations/random.hpp"
#include "core/device/operations/rows.hpp"
#include "core/device/operations/softmax.hpp"
#include "core/train/nn/attention/eager_attention.hpp"

namespace dstune::nn {
namespace {

constexpr std::int64_t kPack = 8;  // elements: pad_bias of PyTorch's attention.cpp

/// The gradient by the bias, (queries * keys, heads), summed over the batch.
Value bias_gradient(const Tape& on, const ScoreShape& shape, const Value& d_scores) {
  Value d_bias = new_value(on.device(), d_scores.matrix.dtype, shape.square(), shape.heads);
  on.run(ScoreBiasGradient{
      .shape = shape, .d_scores = d_scores.tensor(), .adds = false, .d_bias = d_bias.tensor()});
  return d_bias;
}

/// The bias as the kernel reads it: a stack whose rows are whole packs.
Value stacked(const Tape& on, const BiasedShape& call, const Value& bias) {
  const ScoreShape& shape = call.scores;
  const std::int64_t padded = (shape.keys + kPack - 1) / kPack * kPack;
  const bool is_stack = bias.count > 1;
  if (is_stack && padded == shape.keys) return bias.detached();
  Value stack = new_value(on.device(), bias.matrix.dtype, shape.heads * shape.queries, padded);
  stack.matrix = as_matrix(stack.tensor().slice(0, shape.of_one()), shape.queries, shape.keys);
  stack.count = shape.heads;
  if (is_stack) {
    on.run(CopyRows{bias.rows(), stack.rows()});
  } else {
    on.run(StackBias{
        .shape = shape, .bias = bias.tensor(), .causal = call.causal, .out = stack.tensor()});
  }
  return stack;
}

/// create_position_bias_mask(); the mask is the same for all sequences of the batch.
Value mask_of(Tape& on, const BiasedShape& call, const Value& bias) {
  const ScoreShape& shape = call.scores;
  const bool records = on.records(bias.needs_gradient());
  Saved visible;
  if (call.causal && records) {
    visible = on.save(value_of(
        Buffer(on.device(), MemoryCategory::activations, static_cast<Bytes>(shape.square())),
        DType::int8, shape.queries, shape.keys));
  }
  Value mask = stacked(on, call, bias);
  if (!records) return mask;
  return on.record(std::move(mask), [shape, node = bias.node, visible = std::move(visible)](
                                        Tape& back, const Value& d) mutable {
    const Value kept = visible.take(back);
    back.give(node, bias_gradient(back, shape, d));
  });
}

/// The heads of sequence `index`, which lie side by side in rows.
Value heads_in(const BiasedShape& call, const Value& rows, std::int64_t index) {
  Value heads = rows;
  const std::int64_t length = rows.matrix.rows / call.scores.batch;
  const std::int64_t width = rows.matrix.cols;
  heads.matrix =
      as_matrix(rows.tensor().slice(index * length * width, length * width), length, width);
  heads.matrix.cols = call.head_size;
  heads.count = call.scores.heads;
  heads.step = call.head_size;
  return heads;
}

/// Memory for the scores of one sequence.
Value scratch(const Tape& on, const ScoreShape& shape) {
  const DType dtype = on.context().dtype;
  Value scores =
      value_of(make_buffer(on.device(), MemoryCategory::temporaries, shape.of_one(), dtype), dtype,
               shape.heads * shape.queries, shape.keys);
  scores.matrix.rows = shape.queries;
  scores.count = shape.heads;
  return scores;
}

/// The probabilities of one sequence, and what dropout leaves of them.
struct Probabilities {
  Value whole;
  Buffer dropped;
  Value used;
};

Probabilities probabilities(const Tape& on, const BiasedShape& call, const Value& q, const Value& k,
                            const Value& mask, std::int64_t sequence) {
  Device& device = on.device();
  ScoreShape shape = call.scores;
  shape.batch = 1;
  Probabilities result;
  result.whole = scratch(on, shape);
  const Value& scores = result.whole;
  multiply_into(on, heads_in(call, q, sequence), Transpose::no, heads_in(call, k, sequence),
                Transpose::yes, scores);
  on.device().run(AddScoreBias{.shape = shape,
                               .scores = scores.tensor(),
                               .bias = mask.tensor(),
                               .stacked = true,
                               .out = scores.tensor()});
  on.device().run(Softmax{scores.rows(), scores.rows()});
  result.used = scores;
  if (call.dropout == 0) return result;
  result.dropped = {device, MemoryCategory::temporaries, static_cast<Bytes>(shape.of_one())};
  result.used = scratch(on, shape);
  on.device().run(dstune::Dropout{.in = scores.tensor(),
                                  .probability = call.dropout,
                                  .seed = seed_of(call.seed, static_cast<std::uint64_t>(sequence)),
                                  .mask = result.dropped.tensor(DType::int8),
                                  .out = result.used.tensor()});
  return result;
}

/// The backward of the kernel's node.
struct BiasedBackward {
  BiasedShape call;
  std::array<std::size_t, 4> nodes;  ///< the nodes of q, k, v and the mask
  Saved q, k, v, mask, out, lse;

  void operator()(Tape& back, const Value& d);
};

/// Writes d_v and d_scores of one sequence.
void differentiate(const Tape& on, const BiasedShape& call, const Probabilities& probs,
                   const Value& d_out, const Value& v, const Value& d_v, const Value& d_scores) {
  multiply_into(on, probs.used, Transpose::yes, d_out, Transpose::no, d_v);
  multiply_into(on, d_out, Transpose::no, v, Transpose::yes, d_scores);
  if (probs.dropped) {
    on.device().run(DropoutBackward{.d_out = d_scores.tensor(),
                                    .probability = call.dropout,
                                    .mask = probs.dropped.tensor(DType::int8),
                                    .d_in = d_scores.tensor()});
  }
  on.device().run(SoftmaxBackward{d_scores.rows(), probs.whole.rows(), d_scores.rows()});
}

void BiasedBackward::operator()(Tape& back, const Value& d) {
  const Value own_q = q.take(back);
  const Value own_k = k.take(back);
  const Value own_v = v.take(back);
  const Value own_mask = mask.take(back);
  const Value own_out = out.take(back);
  const Value own_lse = lse.take(back);
  const ScoreShape& shape = call.scores;
  const bool trains_bias = nodes[3] != Value::kNoNode;
  Value d_q = new_like(back.device(), own_q);
  Value d_k = new_like(back.device(), own_k);
  Value d_v = new_like(back.device(), own_v);
  Value all = value_of(make_buffer(back.device(), MemoryCategory::temporaries,
                                   trains_bias ? shape.count() : shape.of_one(), d.matrix.dtype),
                       d.matrix.dtype,
                       (trains_bias ? shape.batch : 1) * shape.heads * shape.queries, shape.keys);
  for (std::int64_t i = 0; i < shape.batch; ++i) {
    Value d_scores = all;
    d_scores.matrix =
        as_matrix(all.tensor().slice(trains_bias ? i * shape.of_one() : 0, shape.of_one()),
                  shape.heads * shape.queries, shape.keys);
    d_scores.matrix.rows = shape.queries;
    d_scores.count = shape.heads;
    differentiate(back, call, probabilities(back, call, own_q, own_k, own_mask, i),
                  heads_in(call, d, i), heads_in(call, own_v, i), heads_in(call, d_v, i), d_scores);
    multiply_into(back, d_scores, Transpose::no, heads_in(call, own_k, i), Transpose::no,
                  heads_in(call, d_q, i));
    multiply_into(back, d_scores, Transpose::yes, heads_in(call, own_q, i), Transpose::no,
                  heads_in(call, d_k, i));
  }
  back.count_operators(trains_bias ? kBiasedAttentionBackwardCalls
                                   : kOperatorCalls<AttentionBackward>);
  back.give(nodes[0], std::move(d_q));
  back.give(nodes[1], std::move(d_k));
  back.give(nodes[2], std::move(d_v));
  back.give(nodes[3], std::move(all));
}

}  // namespace

Value add_bias(Tape& on, const ScoreShape& shape, const Value& scores, const Value& bias) {
  Value out = new_like(on.device(), scores);
  on.run(AddScoreBias{.shape = shape,
                      .scores = scores.tensor(),
                      .bias = bias.tensor(),
                      .stacked = bias.count > 1,
                      .out = out.tensor()});
  if (!on.records(scores.needs_gradient() || bias.needs_gradient())) return out;
  return on.record(std::move(out),
                   [shape, first = scores.node, second = bias.node](Tape& back, Value d) {
                     Value d_bias;
                     if (second != Value::kNoNode) d_bias = bias_gradient(back, shape, d);
                     back.give(first, std::move(d));
                     back.give(second, std::move(d_bias));
                   });
}

Value attend_with_bias(Tape& on, const BiasedShape& call, const Value& q, const Value& k,
                       const Value& v, const Value& bias) {
  const Value mask = mask_of(on, call, bias);
  Value out = new_like(on.device(), q);
  const Value lse = new_value(on.device(), DType::fp32, q.matrix.rows, call.scores.heads);
  for (std::int64_t i = 0; i < call.scores.batch; ++i) {
    const Probabilities probs = probabilities(on, call, q, k, mask, i);
    multiply_into(on, probs.used, Transpose::no, heads_in(call, v, i), Transpose::no,
                  heads_in(call, out, i));
  }
  on.count_operators(mask.needs_gradient() ? kBiasedAttentionCalls : kOperatorCalls<Attention>);
  if (!on.records(q.needs_gradient() || k.needs_gradient() || v.needs_gradient() ||
                  mask.needs_gradient())) {
    return out;
  }
  BiasedBackward backward{.call = call,
                          .nodes = {q.node, k.node, v.node, mask.node},
                          .q = on.save(q),
                          .k = on.save(k),
                          .v = on.save(v),
                          .mask = on.save(mask),
                          .out = on.save(out),
                          .lse = on.save(lse)};
  return on.record(std::move(out), std::move(backward));
}

}  // namespace dstune::nn
