#include "core/train/families/t5/t5_sdpa.hpp"

#include <utility>

#include "core/device/operations/dropout.hpp"
#include "core/device/operations/softmax.hpp"

namespace dstune::t5 {

namespace {

using layers::Workspace;

Buffer scratch(const Call& call) {
  return make_buffer(*call.queries.device, MemoryCategory::temporaries, call.scores().of_one(),
                     call.queries.dtype);
}

ScoreShape of_one_sequence(const Call& call) {
  ScoreShape shape = call.scores();
  shape.batch = 1;
  return shape;
}

Matrix rows_of(const Call& call, const Tensor& scores) {
  const ScoreShape shape = call.scores();
  return as_matrix(scores, shape.heads * shape.queries, shape.keys);
}

Matrices stack_of(const Call& call, const Tensor& scores) {
  const ScoreShape shape = call.scores();
  return {as_matrix(scores.slice(0, shape.square()), shape.queries, shape.keys), shape.square()};
}

std::uint64_t seed_of(const Call& call, std::int64_t sequence) {
  return layers::seed_of(call.seed, static_cast<std::uint64_t>(sequence));
}

}  // namespace

SdpaScores::Probabilities SdpaScores::probabilities(const Call& call, const Buffer& q,
                                                    const Buffer& k, const PositionBias& bias,
                                                    std::int64_t sequence) const {
  const Workspace& work = call.queries;
  Probabilities result{.whole = scratch(call), .mask = {}, .left = {}};
  const Tensor scores = result.whole.tensor(work.dtype);
  multiply(*work.device, heads_of_sequence(call, work, q, sequence), Transpose::no,
           heads_of_sequence(call, call.keys, k, sequence), Transpose::yes, stack_of(call, scores),
           call.heads);
  const ScoreShape shape = of_one_sequence(call);
  work.device->run(AddScoreBias{.shape = shape,
                                .scores = scores,
                                .bias = bias.tensor_of(work, shape, stacked_),
                                .stacked = true,
                                .out = scores});
  work.device->run(Softmax{rows_of(call, scores), rows_of(call, scores)});
  if (call.dropout == 0) return result;
  result.mask = {*work.device, MemoryCategory::temporaries, static_cast<Bytes>(shape.of_one())};
  result.left = scratch(call);
  work.device->run(Dropout{.in = scores,
                           .probability = call.dropout,
                           .seed = seed_of(call, sequence),
                           .mask = result.mask.tensor(DType::int8),
                           .out = result.left.tensor(work.dtype)});
  return result;
}

Buffer SdpaScores::forward(const Call& call, const Buffer& q, const Buffer& k, const Buffer& v,
                           const PositionBias& bias) {
  const Workspace& work = call.queries;
  const ScoreShape shape = call.scores();
  if (bias.is_causal() && bias.is_learnt()) {
    visible_ = {*work.device, MemoryCategory::activations, static_cast<Bytes>(shape.square())};
  }
  stacked_ = bias.stacked(work, shape);
  Buffer out = work.activation(call.width());
  lse_ = work.activation_fp32(call.heads);
  for (std::int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    const Probabilities probs = probabilities(call, q, k, bias, sequence);
    const Tensor used = (probs.left ? probs.left : probs.whole).tensor(work.dtype);
    multiply(*work.device, stack_of(call, used), Transpose::no,
             heads_of_sequence(call, call.keys, v, sequence), Transpose::no,
             heads_of_sequence(call, work, out, sequence), call.heads);
  }
  return out;
}

void SdpaScores::differentiate(const Call& call, const Probabilities& probs, const Matrices& d_out,
                               const Matrices& v, const Matrices& d_v,
                               const Tensor& d_scores) const {
  Device& device = *call.queries.device;
  const DType dtype = call.queries.dtype;
  const Tensor whole = probs.whole.tensor(dtype);
  const Tensor used = probs.left ? probs.left.tensor(dtype) : whole;
  multiply(device, stack_of(call, used), Transpose::yes, d_out, Transpose::no, d_v, call.heads);
  multiply(device, d_out, Transpose::no, v, Transpose::yes, stack_of(call, d_scores), call.heads);
  if (probs.mask) {
    device.run(DropoutBackward{.d_out = d_scores,
                               .probability = call.dropout,
                               .mask = probs.mask.tensor(DType::int8),
                               .d_in = d_scores});
  }
  device.run(
      SoftmaxBackward{rows_of(call, d_scores), rows_of(call, whole), rows_of(call, d_scores)});
}

Gradients SdpaScores::backward(const Call& call, const Buffer& d_out, const Buffer& q,
                               const Buffer& k, const Buffer& v, PositionBias& bias) {
  const Workspace& work = call.queries;
  const Workspace& keys = call.keys;
  const ScoreShape shape = call.scores();
  Gradients d{.q = work.activation(call.width()),
              .k = keys.activation(call.width()),
              .v = keys.activation(call.width())};
  const std::int64_t kept = bias.is_learnt() ? shape.of_one() : 0;
  const Buffer all = make_buffer(*work.device, MemoryCategory::temporaries,
                                 bias.is_learnt() ? shape.count() : shape.of_one(), work.dtype);
  for (std::int64_t i = 0; i < shape.batch; ++i) {
    const Tensor d_scores = all.tensor(work.dtype).slice(i * kept, shape.of_one());
    differentiate(call, probabilities(call, q, k, bias, i), heads_of_sequence(call, work, d_out, i),
                  heads_of_sequence(call, keys, v, i), heads_of_sequence(call, keys, d.v, i),
                  d_scores);
    multiply(*work.device, stack_of(call, d_scores), Transpose::no,
             heads_of_sequence(call, keys, k, i), Transpose::no,
             heads_of_sequence(call, work, d.q, i), call.heads);
    multiply(*work.device, stack_of(call, d_scores), Transpose::yes,
             heads_of_sequence(call, work, q, i), Transpose::no,
             heads_of_sequence(call, keys, d.k, i), call.heads);
  }
  bias.add_gradient(work, shape, all.tensor(work.dtype));
  for (Buffer* used : {&lse_, &stacked_, &visible_}) used->reset();
  return d;
}

}  // namespace dstune::t5
