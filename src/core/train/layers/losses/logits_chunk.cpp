#include "core/train/layers/losses/logits_chunk.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/softmax.hpp"
#include "core/train/layers/losses/labelled_rows.hpp"

namespace dstune::layers {

LogitsChunk::LogitsChunk(const Workspace& work, ModuleHooks& hooks, const Projection& head,
                         Tensor x, Tensor labels, double share)
    : work_(work),
      hooks_(hooks),
      head_(head),
      device_(*work.device),
      x_(x),
      labels_(labels),
      rows_(labels.numel),
      share_(share) {}

Buffer LogitsChunk::buffer(std::int64_t cols) const {
  return rows_of(work_, rows_, cols, DType::fp32);
}

Matrix LogitsChunk::logits_in(const Buffer& buffer) const {
  return as_matrix(buffer.tensor(DType::fp32), rows_, head_.vocab_size);
}

Matrix LogitsChunk::x() const { return as_matrix(x_, rows_, head_.size); }

Buffer LogitsChunk::make_logits() const {
  Buffer logits = rows_of(work_, rows_, head_.vocab_size, work_.dtype);
  device_.run(Gemm{.transpose_b = Transpose::yes,
                   .a = x(),
                   .b = head_.matrix(hooks_.parameter(head_.weight)),
                   .c = as_matrix(logits.tensor(work_.dtype), rows_, head_.vocab_size)});
  if (work_.dtype == DType::fp32) return logits;
  Buffer upcast = buffer(head_.vocab_size);
  device_.run(Cast{logits.tensor(work_.dtype), upcast.tensor(DType::fp32)});
  return upcast;
}

Buffer LogitsChunk::capped(Buffer logits, SoftCap& cap) const {
  if (head_.softcap == 0) return logits;
  return cap.forward(work_, head_.softcap, std::move(logits), DType::fp32);
}

Buffer LogitsChunk::make_log_probs(const Buffer& logits) const {
  Buffer log_probs = buffer(head_.vocab_size);
  device_.run(LogSoftmax{logits_in(logits), logits_in(log_probs)});
  return log_probs;
}

void LogitsChunk::log_guesses(const Buffer& logits) const {
  const Buffer guesses = rows_of(work_, rows_, 1, DType::int64);
  device_.run(Argmax{logits_in(logits), guesses.tensor(DType::int64)});
}

void LogitsChunk::log_entropy(const Buffer& log_probs) const {
  const Buffer probs = buffer(head_.vocab_size);
  const Buffer terms = buffer(head_.vocab_size);
  const Buffer entropies = buffer(1);
  device_.run(Entropy{logits_in(log_probs), logits_in(probs), logits_in(terms),
                      entropies.tensor(DType::fp32)});
}

void LogitsChunk::forward(Tensor loss) const {
  hooks_.fetch(head_.module);
  Buffer logits = make_logits();
  hooks_.release(head_.module);
  {
    SoftCap not_kept;
    logits = capped(std::move(logits), not_kept);
  }
  const Buffer log_probs = make_log_probs(logits);
  device_.run(
      NllLoss{.log_probs = logits_in(log_probs), .labels = labels_, .sum = loss, .factor = share_});
  log_guesses(logits);
  log_entropy(log_probs);
}

// The checkpoint makes again what forward made, up to the last tensor that was saved: the mask that
// the entropies were multiplied with. So all but a sum is computed once more.
ChunkGradients LogitsChunk::backward(double factor) const {
  hooks_.fetch(head_.module);
  Buffer log_probs;
  SoftCap cap;
  {
    const Buffer logits = capped(make_logits(), cap);
    log_probs = make_log_probs(logits);
    log_guesses(logits);
    log_entropy(log_probs);
  }
  Buffer d_logits = logits_gradient(std::move(log_probs), cap, factor);

  const Matrix d_matrix = as_matrix(d_logits.tensor(work_.dtype), rows_, head_.vocab_size);
  ChunkGradients gradients{rows_of(work_, rows_, head_.size, work_.dtype), {}};
  if (hooks_.is_trainable(head_.weight)) {
    gradients.weight = work_.gradient(head_.vocab_size * head_.size);
    device_.run(Gemm{.transpose_a = Transpose::yes,
                     .a = d_matrix,
                     .b = x(),
                     .c = head_.matrix(gradients.weight.tensor(work_.dtype))});
  }
  device_.run(Gemm{.a = d_matrix,
                   .b = head_.matrix(hooks_.parameter(head_.weight)),
                   .c = as_matrix(gradients.rows.tensor(work_.dtype), rows_, head_.size)});
  hooks_.release(head_.module);
  return gradients;
}

Buffer LogitsChunk::logits_gradient(Buffer log_probs, SoftCap& cap, double factor) const {
  Buffer d_log_probs = buffer(head_.vocab_size);
  device_.run(NllLossBackward{
      .labels = labels_, .loss_scale = factor * share_, .out = logits_in(d_log_probs)});
  Buffer d_fp32 = buffer(head_.vocab_size);
  device_.run(LogSoftmaxBackward{.d_log_probs = logits_in(d_log_probs),
                                 .log_probs = logits_in(log_probs),
                                 .d_logits = logits_in(d_fp32)});
  d_log_probs.reset();
  log_probs.reset();
  if (head_.softcap > 0) {
    d_fp32 = cap.backward(work_, head_.softcap, std::move(d_fp32), DType::fp32);
  }
  if (work_.dtype == DType::fp32) return d_fp32;
  Buffer d_logits = rows_of(work_, rows_, head_.vocab_size, work_.dtype);
  device_.run(Cast{d_fp32.tensor(DType::fp32), d_logits.tensor(work_.dtype)});
  return d_logits;
}

}  // namespace dstune::layers
