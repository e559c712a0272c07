#include "core/train/layers/eager_attention.hpp"

#include <utility>

#include "core/device/operations/activate.hpp"
#include "core/device/operations/attention_mask.hpp"
#include "core/device/operations/copy.hpp"
#include "core/device/operations/dropout.hpp"
#include "core/device/operations/scale.hpp"
#include "core/device/operations/softmax.hpp"
#include "core/train/layers/score_mask.hpp"
#include "core/train/layers/stacked_heads.hpp"

namespace dstune::layers {

namespace {

/// The copy where there is one, else the heads of the single sequence as they lie.
Stack heads_of(const Workspace& work, const AttentionShape& shape, const Buffer& copy,
               const Heads& heads) {
  return copy ? layers::heads_of(work, shape, copy) : layers::heads_of(shape, heads);
}

/// As contiguous heads, each of `heads` as often as it serves; empty if they are so already.
Buffer copied(const Workspace& work, const AttentionShape& shape, const Heads& in,
              std::int64_t heads) {
  if (shape.batch == 1 && heads == shape.heads) return {};
  return stacked(work, shape, in, heads);
}

/// torch.bmm
void multiply(const Workspace& work, const AttentionShape& shape, const Stack& a,
              Transpose transpose_a, const Stack& b, Transpose transpose_b, const Stack& c) {
  multiply(work, shape.batch * shape.heads, a, transpose_a, b, transpose_b, c);
}

Buffer cast(const Workspace& work, const AttentionShape& shape, const Buffer& in, DType from,
            DType to) {
  Buffer out = new_scores(work, shape, to);
  work.device->run(Cast{in.tensor(from), out.tensor(to)});
  return out;
}

/// A new tensor, and frees the old one.
Buffer masked(const Workspace& work, const AttentionShape& shape, Buffer scores,
              const Buffer* mask) {
  const bool is_given = mask != nullptr && *mask;
  const Buffer own = is_given ? Buffer() : score_mask(work, shape);
  const Buffer& used = is_given ? *mask : own;
  Buffer out = new_scores(work, shape, work.dtype);
  work.device->run(
      AddMask{shape, scores.tensor(work.dtype), used.tensor(work.dtype), out.tensor(work.dtype)});
  return out;
}

}  // namespace

Buffer attention_mask(const Workspace& work, const AttentionShape& shape) {
  if (!is_eager(work, shape) || !hides_keys(work, shape)) return {};
  return score_mask(work, shape);
}

Buffer EagerAttention::cap(const Workspace& work, const AttentionShape& shape, Buffer scores) {
  Buffer divided = scaled(work, std::move(scores), 1 / shape.softcap);
  tanh_ = new_scores(work, shape, work.dtype);
  work.device->run(
      Activate{Activation::tanh, divided.tensor(work.dtype), tanh_.tensor(work.dtype)});
  divided.reset();
  Buffer capped = new_scores(work, shape, work.dtype);
  work.device->run(ScaleTo{tanh_.tensor(work.dtype), shape.softcap, capped.tensor(work.dtype)});
  return capped;
}

Buffer EagerAttention::scores(const Workspace& work, const AttentionShape& shape, const Heads& q,
                              const Heads& k) {
  k_ = copied(work, shape, k, shape.kv_heads);
  q_ = copied(work, shape, q, shape.heads);
  Buffer products = new_scores(work, shape, work.dtype);
  multiply(work, shape, heads_of(work, shape, q_, q), Transpose::no, heads_of(work, shape, k_, k),
           Transpose::yes, scores_of(work, shape, products));
  Buffer result = scaled(work, std::move(products), shape.score_scale());
  return shape.softcap == 0 ? std::move(result) : cap(work, shape, std::move(result));
}

// at::softmax() to fp32 reads fp16 on CUDA as it is, other types from a copy (SoftMax.cpp).
void EagerAttention::probabilities(const Workspace& work, const AttentionShape& shape,
                                   Buffer scores) {
  const DType dtype = dtype_of_softmax(work);
  const bool upcasts = dtype != work.dtype && work.dtype != DType::fp16;
  Buffer upcast;
  if (upcasts) upcast = cast(work, shape, scores, work.dtype, dtype);
  softmax_ = new_scores(work, shape, dtype);
  work.device->run(
      Softmax{score_rows(shape, upcasts ? upcast : scores, upcasts ? dtype : work.dtype),
              score_rows(shape, softmax_, dtype)});
  if (work.attention == AttentionKind::eager_torch_1_10) {
    softmax_input_ = std::move(upcasts ? upcast : scores);
  }
  upcast.reset();
  if (dtype != work.dtype) probs_ = cast(work, shape, softmax_, dtype, work.dtype);
}

void EagerAttention::drop(const Workspace& work, const AttentionShape& shape) {
  const Buffer& whole = probs_ ? probs_ : softmax_;
  const std::int64_t count = shape.rows() * shape.heads * shape.sequence;
  dropped_ = {*work.device, MemoryCategory::activations, static_cast<Bytes>(count)};
  Buffer left = new_scores(work, shape, work.dtype);
  work.device->run(Dropout{.in = whole.tensor(work.dtype),
                           .probability = shape.dropout,
                           .seed = shape.seed,
                           .mask = dropped_.tensor(DType::int8),
                           .out = left.tensor(work.dtype)});
  probs_ = std::move(left);
}

Buffer EagerAttention::forward(const Workspace& work, const AttentionShape& shape, const Heads& q,
                               const Heads& k, const Heads& v, const Buffer* mask) {
  const bool repeats = shape.kv_heads != shape.heads;
  if (repeats) v_ = copied(work, shape, v, shape.kv_heads);
  {
    Buffer visible = scores(work, shape, q, k);
    if (hides_keys(work, shape)) visible = masked(work, shape, std::move(visible), mask);
    probabilities(work, shape, std::move(visible));
  }
  if (shape.dropout > 0) drop(work, shape);
  if (!repeats) v_ = copied(work, shape, v, shape.kv_heads);
  const Buffer by_head = new_stack(work, shape);
  multiply(work, shape, scores_of(work, shape, probs_ ? probs_ : softmax_), Transpose::no,
           heads_of(work, shape, v_, v), Transpose::no, heads_of(work, shape, by_head));
  Buffer out = work.activation(shape.heads * shape.head_size);
  spread(work, shape, by_head, {work.matrix(out, shape.heads * shape.head_size), shape.head_size},
         shape.heads);
  return out;
}

Buffer EagerAttention::cap_gradient(const Workspace& work, const AttentionShape& shape,
                                    Buffer d_scores) {
  d_scores = scaled(work, std::move(d_scores), shape.softcap);
  Buffer d_divided = new_scores(work, shape, work.dtype);
  work.device->run(ActivateBackward{Activation::tanh, d_scores.tensor(work.dtype),
                                    tanh_.tensor(work.dtype), d_divided.tensor(work.dtype)});
  tanh_.reset();
  d_scores.reset();
  return scaled(work, std::move(d_divided), 1 / shape.softcap);
}

Buffer EagerAttention::scores_gradient(const Workspace& work, const AttentionShape& shape,
                                       Buffer d_probs) {
  const DType dtype = dtype_of_softmax(work);
  if (dropped_) {
    Buffer d_whole = new_scores(work, shape, work.dtype);
    work.device->run(DropoutBackward{.d_out = d_probs.tensor(work.dtype),
                                     .probability = shape.dropout,
                                     .mask = dropped_.tensor(DType::int8),
                                     .d_in = d_whole.tensor(work.dtype)});
    d_probs = std::move(d_whole);
    dropped_.reset();
  }
  if (dtype != work.dtype) d_probs = cast(work, shape, d_probs, work.dtype, dtype);
  const DType of_scores = work.dtype == DType::fp16 ? work.dtype : dtype;
  Buffer d_scores = new_scores(work, shape, of_scores);
  work.device->run(SoftmaxBackward{score_rows(shape, d_probs, dtype),
                                   score_rows(shape, softmax_, dtype),
                                   score_rows(shape, d_scores, of_scores)});
  for (Buffer* used : {&d_probs, &softmax_, &softmax_input_}) used->reset();
  if (of_scores != work.dtype) d_scores = cast(work, shape, d_scores, of_scores, work.dtype);
  if (shape.softcap > 0) d_scores = cap_gradient(work, shape, std::move(d_scores));
  return scaled(work, std::move(d_scores), shape.score_scale());
}

void EagerAttention::backward(const Workspace& work, const AttentionShape& shape, const Heads& q,
                              const Heads& k, const Heads& v, const Buffer& d_out, Buffer* owner) {
  const Heads d_out_heads{work.matrix(d_out, shape.heads * shape.head_size), shape.head_size};
  Buffer d_by_head = copied(work, shape, d_out_heads, shape.heads);
  if (owner != nullptr && d_by_head) owner->reset();
  const Stack d_o = heads_of(work, shape, d_by_head, d_out_heads);
  Buffer d_probs = new_scores(work, shape, work.dtype);
  multiply(work, shape, d_o, Transpose::no, heads_of(work, shape, v_, v), Transpose::yes,
           scores_of(work, shape, d_probs));
  d_v_ = new_stack(work, shape);
  multiply(work, shape, scores_of(work, shape, probs_ ? probs_ : softmax_), Transpose::yes, d_o,
           Transpose::no, heads_of(work, shape, d_v_));
  for (Buffer* used : {&d_by_head, &v_, &probs_}) used->reset();
  if (owner != nullptr) owner->reset();

  const Buffer d_scores = scores_gradient(work, shape, std::move(d_probs));
  d_q_ = new_stack(work, shape);
  multiply(work, shape, scores_of(work, shape, d_scores), Transpose::no,
           heads_of(work, shape, k_, k), Transpose::no, heads_of(work, shape, d_q_));
  d_k_ = new_stack(work, shape);
  multiply(work, shape, scores_of(work, shape, d_scores), Transpose::yes,
           heads_of(work, shape, q_, q), Transpose::no, heads_of(work, shape, d_k_));
  q_.reset();
  k_.reset();
}

void EagerAttention::hand_over(const Workspace& work, const AttentionShape& shape, const Heads& d_q,
                               const Heads& d_k, const Heads& d_v) {
  spread(work, shape, d_q_, d_q, shape.heads);
  spread(work, shape, d_k_, d_k, shape.kv_heads);
  spread(work, shape, d_v_, d_v, shape.kv_heads);
  for (Buffer* used : {&d_q_, &d_k_, &d_v_}) used->reset();
}

}  // namespace dstune::layers
