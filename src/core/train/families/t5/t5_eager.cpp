#include "core/train/families/t5/t5_eager.hpp"

#include <utility>

#include "core/device/operations/dropout.hpp"
#include "core/device/operations/scale.hpp"
#include "core/device/operations/softmax.hpp"
#include "core/device/operations/stack_heads.hpp"

namespace dstune::t5 {

namespace {

using layers::Workspace;

Buffer new_scores(const Call& call) {
  return make_buffer(*call.queries.device, MemoryCategory::activations, call.scores().count(),
                     call.queries.dtype);
}

Matrix score_rows(const Call& call, const Buffer& scores) {
  const ScoreShape shape = call.scores();
  return as_matrix(scores.tensor(call.queries.dtype), shape.count() / shape.keys, shape.keys);
}

Matrices scores_of(const Call& call, const Buffer& scores) {
  const ScoreShape shape = call.scores();
  const Tensor first = scores.tensor(call.queries.dtype).slice(0, shape.square());
  return {as_matrix(first, shape.queries, shape.keys), shape.square()};
}

Matrix stacked_rows(const Call& call, const Workspace& work, const Buffer& stack) {
  return as_matrix(stack.tensor(work.dtype), work.rows() * call.heads, call.head_size);
}

// torch.bmm() wants one stride over batch and heads, which the heads of one sequence have.
Buffer copied(const Call& call, const Workspace& work, const Buffer& rows) {
  if (work.micro_batch == 1) return {};
  Buffer out = work.activation(call.width());
  work.device->run(StackHeads{.shape = call.side(work),
                              .in = {call.matrix(work, rows), call.head_size},
                              .heads = call.heads,
                              .out = stacked_rows(call, work, out)});
  return out;
}

/// The copy where there is one, else the heads of the single sequence as they lie.
Matrices stack_of(const Call& call, const Workspace& work, const Buffer& copy, const Buffer& rows) {
  if (!copy) return heads_of_sequence(call, work, rows, 0);
  const std::int64_t elements = work.sequence_length * call.head_size;
  return {
      as_matrix(copy.tensor(work.dtype).slice(0, elements), work.sequence_length, call.head_size),
      elements};
}

/// Rows of a stack of heads, which is freed.
Buffer spread(const Call& call, const Workspace& work, const Buffer& stack) {
  Buffer rows = work.activation(call.width());
  work.device->run(SpreadHeads{.shape = call.side(work),
                               .in = stacked_rows(call, work, stack),
                               .out = {call.matrix(work, rows), call.head_size},
                               .heads = call.heads});
  return rows;
}

void multiply_all(const Call& call, const Matrices& a, Transpose transpose_a, const Matrices& b,
                  Transpose transpose_b, const Matrices& c) {
  multiply(*call.queries.device, a, transpose_a, b, transpose_b, c,
           call.queries.micro_batch * call.heads);
}

/// T5 scales by 1, which is a kernel nevertheless.
Buffer scaled(const Call& call, const Buffer& in) {
  Buffer out = new_scores(call);
  const DType dtype = call.queries.dtype;
  call.queries.device->run(ScaleTo{in.tensor(dtype), 1, out.tensor(dtype)});
  return out;
}

}  // namespace

void EagerScores::drop(const Call& call) {
  const Workspace& work = call.queries;
  dropped_ = {*work.device, MemoryCategory::activations, static_cast<Bytes>(call.scores().count())};
  probs_ = new_scores(call);
  work.device->run(Dropout{.in = softmax_.tensor(work.dtype),
                           .probability = call.dropout,
                           .seed = call.seed,
                           .mask = dropped_.tensor(DType::int8),
                           .out = probs_.tensor(work.dtype)});
}

Buffer EagerScores::forward(const Call& call, const Buffer& q, const Buffer& k, const Buffer& v,
                            const PositionBias& bias) {
  const Workspace& work = call.queries;
  k_ = copied(call, call.keys, k);
  q_ = copied(call, work, q);
  {
    Buffer scores = new_scores(call);
    multiply_all(call, stack_of(call, work, q_, q), Transpose::no, stack_of(call, call.keys, k_, k),
                 Transpose::yes, scores_of(call, scores));
    scores = scaled(call, scores);
    scores = bias.added_to(work, call.scores(), std::move(scores));
    softmax_ = new_scores(call);
    work.device->run(Softmax{score_rows(call, scores), score_rows(call, softmax_)});
  }
  if (call.dropout > 0) drop(call);
  v_ = copied(call, call.keys, v);
  const Buffer by_head = work.activation(call.width());
  multiply_all(
      call, scores_of(call, probs_ ? probs_ : softmax_), Transpose::no,
      stack_of(call, call.keys, v_, v), Transpose::no,
      {as_matrix(by_head.tensor(work.dtype).slice(0, work.sequence_length * call.head_size),
                 work.sequence_length, call.head_size),
       work.sequence_length * call.head_size});
  return spread(call, work, by_head);
}

Buffer EagerScores::scores_gradient(const Call& call, Buffer d_probs) {
  const Workspace& work = call.queries;
  if (dropped_) {
    Buffer d_whole = new_scores(call);
    work.device->run(DropoutBackward{.d_out = d_probs.tensor(work.dtype),
                                     .probability = call.dropout,
                                     .mask = dropped_.tensor(DType::int8),
                                     .d_in = d_whole.tensor(work.dtype)});
    d_probs = std::move(d_whole);
    dropped_.reset();
  }
  Buffer d_scores = new_scores(call);
  work.device->run(SoftmaxBackward{score_rows(call, d_probs), score_rows(call, softmax_),
                                   score_rows(call, d_scores)});
  softmax_.reset();
  return d_scores;
}

Gradients EagerScores::backward(const Call& call, Buffer d_out, const Buffer& q, const Buffer& k,
                                const Buffer& v, PositionBias& bias) {
  const Workspace& work = call.queries;
  const Workspace& keys = call.keys;
  const auto stack_like = [&](const Workspace& side, const Buffer& stack) {
    const std::int64_t elements = side.sequence_length * call.head_size;
    return Matrices{as_matrix(stack.tensor(side.dtype).slice(0, elements), side.sequence_length,
                              call.head_size),
                    elements};
  };
  Buffer d_by_head = copied(call, work, d_out);
  if (d_by_head) d_out.reset();
  const Matrices d_o = stack_of(call, work, d_by_head, d_out);
  Buffer d_probs = new_scores(call);
  multiply_all(call, d_o, Transpose::no, stack_of(call, keys, v_, v), Transpose::yes,
               scores_of(call, d_probs));
  Buffer d_v = keys.activation(call.width());
  multiply_all(call, scores_of(call, probs_ ? probs_ : softmax_), Transpose::yes, d_o,
               Transpose::no, stack_like(keys, d_v));
  for (Buffer* used : {&d_by_head, &d_out, &v_, &probs_}) used->reset();

  Buffer d_scores = scores_gradient(call, std::move(d_probs));
  bias.add_gradient(work, call.scores(), d_scores.tensor(work.dtype));
  d_scores = scaled(call, d_scores);
  Buffer d_q = work.activation(call.width());
  multiply_all(call, scores_of(call, d_scores), Transpose::no, stack_of(call, keys, k_, k),
               Transpose::no, stack_like(work, d_q));
  Buffer d_k = keys.activation(call.width());
  multiply_all(call, scores_of(call, d_scores), Transpose::yes, stack_of(call, work, q_, q),
               Transpose::no, stack_like(keys, d_k));
  for (Buffer* used : {&q_, &k_, &d_scores}) used->reset();
  Gradients result;
  result.v = spread(call, keys, d_v);
  d_v.reset();
  result.k = spread(call, keys, d_k);
  d_k.reset();
  result.q = spread(call, work, d_q);
  return result;
}

}  // namespace dstune::t5
