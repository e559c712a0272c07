#include <utility>

#include "core/device/operations/add.hpp"
#include "core/device/operations/dropout.hpp"
#include "core/device/operations/masked_fill.hpp"
#include "core/device/operations/softmax.hpp"
#include "core/train/families/deberta/deberta_attention.hpp"
#include "core/train/families/shared_gradients.hpp"
#include "core/train/layers/stacked_heads.hpp"

namespace dstune::deberta {

namespace {

using layers::Workspace;

/// `sum` += `more`, or becomes it.
void add_to(const Workspace& work, Buffer& sum, Buffer more) {
  if (sum) {
    work.device->run(Add{sum.tensor(work.dtype), more.tensor(work.dtype)});
  } else {
    sum = std::move(more);
  }
}

}  // namespace

// In the order of autograd: the last projection of forward is the first.
void DisentangledAttention::backward(const Workspace& work, ModuleHooks& hooks, Buffer d_out,
                                     const Buffer& input, const Buffer& d_input,
                                     RelativeTable* table) {
  out.reset();
  Buffer d_v;
  Buffer d_probs = values_backward(work, std::move(d_out), d_v);
  Buffer d_scores = scores_gradient(work, hooks, std::move(d_probs));
  SharedGradients shared(work, hooks);
  ModuleHooks& of_projections = shares_ ? shared : hooks;
  PositionScores::Gradients d;
  if (positions_) {
    d = positions_->backward(work, hooks, of_projections, shape(work), d_scores, q_, k_, *table);
  }
  products_backward(work, std::move(d_scores), d);
  project_backward(work, hooks, value_, std::move(d_v), input, d_input);
  project_backward(work, of_projections, key_, std::move(d.k), input, d_input);
  project_backward(work, of_projections, query_, std::move(d.q), input, d_input);
}

Buffer DisentangledAttention::values_backward(const Workspace& work, Buffer d_out, Buffer& d_v) {
  const AttentionShape own = shape(work);
  const std::int64_t count = own.batch * heads_;
  const Heads d_heads{work.matrix(d_out, size_), own.head_size};
  Buffer by_head;
  if (own.batch > 1) by_head = layers::stacked(work, own, d_heads, heads_);
  if (by_head) d_out.reset();
  const layers::Stack d_o =
      by_head ? layers::heads_of(work, own, by_head) : layers::heads_of(own, d_heads);
  Buffer d_probs = layers::new_scores(work, own, work.dtype);
  layers::multiply(work, count, d_o, Transpose::no, layers::heads_of(work, own, v_), Transpose::yes,
                   layers::scores_of(work, own, d_probs));
  d_v = layers::new_stack(work, own);
  layers::multiply(work, count, layers::scores_of(work, own, probs_ ? probs_ : softmax_),
                   Transpose::yes, d_o, Transpose::no, layers::heads_of(work, own, d_v));
  v_.reset();
  probs_.reset();
  return d_probs;
}

Buffer DisentangledAttention::scores_gradient(const Workspace& work, ModuleHooks& hooks,
                                              Buffer d_probs) {
  const AttentionShape own = shape(work);
  const auto new_scores = [&] { return layers::new_scores(work, own, work.dtype); };
  hooks.fetch(dropout_);
  if (dropped_) {
    Buffer d_whole = new_scores();
    work.device->run(DropoutBackward{.d_out = d_probs.tensor(work.dtype),
                                     .probability = dropout_probability_,
                                     .mask = dropped_.tensor(DType::int8),
                                     .d_in = d_whole.tensor(work.dtype)});
    d_probs = std::move(d_whole);
    dropped_.reset();
  }
  hooks.release(dropout_);
  Buffer d_masked = new_scores();
  work.device->run(SoftmaxBackward{layers::score_rows(own, d_probs, work.dtype),
                                   layers::score_rows(own, softmax_, work.dtype),
                                   layers::score_rows(own, d_masked, work.dtype)});
  d_probs.reset();
  softmax_.reset();
  Buffer d_scores = new_scores();
  work.device->run(FillMasked{.shape = own,
                              .in = d_masked.tensor(work.dtype),
                              .mask = hidden_.tensor(DType::int8),
                              .with_lowest = false,
                              .out = d_scores.tensor(work.dtype)});
  hidden_.reset();
  return d_scores;
}

void DisentangledAttention::products_backward(const Workspace& work, Buffer d_scores,
                                              PositionScores::Gradients& d) {
  const AttentionShape own = shape(work);
  const std::int64_t count = own.batch * heads_;
  const layers::Stack of_scores = layers::scores_of(work, own, d_scores);
  Buffer d_q = layers::new_stack(work, own);
  layers::multiply(work, count, of_scores, Transpose::no, layers::heads_of(work, own, scaled_k_),
                   Transpose::no, layers::heads_of(work, own, d_q));
  Buffer d_k = layers::new_stack(work, own);
  layers::multiply(work, count, of_scores, Transpose::yes, layers::heads_of(work, own, q_),
                   Transpose::no, layers::heads_of(work, own, d_k));
  for (Buffer* used : {&q_, &k_, &scaled_k_, &d_scores}) used->reset();
  add_to(work, d.q, std::move(d_q));
  add_to(work, d.k, layers::scaled(work, std::move(d_k), scale_));
}

void DisentangledAttention::project_backward(const Workspace& work, ModuleHooks& hooks,
                                             const layers::Linear& projection, Buffer d_stack,
                                             const Buffer& input, const Buffer& d_input) const {
  const AttentionShape own = shape(work);
  const Buffer d_rows = work.activation(size_);
  layers::spread(work, own, d_stack, {work.matrix(d_rows, size_), own.head_size}, heads_);
  d_stack.reset();
  const Buffer d_x = projection.backward(work, hooks, d_rows, input);
  work.device->run(Add{d_input.tensor(work.dtype), d_x.tensor(work.dtype)});
}

}  // namespace dstune::deberta
