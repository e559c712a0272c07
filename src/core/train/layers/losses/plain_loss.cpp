#include "core/train/layers/losses/plain_loss.hpp"

#include <utility>

#include "core/device/operations/elementwise.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/losses.hpp"
#include "core/device/operations/softmax.hpp"
#include "core/train/layers/losses/labelled_rows.hpp"

namespace dstune::layers {

void PlainLoss::forward(const Workspace& work, ModuleHooks& hooks, const Projection& head, Buffer x,
                        Tensor tokens, Tensor loss) {
  Device& device = *work.device;
  input_ = std::move(x);
  labels_ = next_tokens(work, tokens);

  hooks.fetch(head.module);
  Buffer logits = work.activation(head.vocab_size);
  device.run(Gemm{.transpose_b = Transpose::yes,
                  .a = work.matrix(input_, head.size),
                  .b = head.matrix(hooks.parameter(head.weight)),
                  .c = work.matrix(logits, head.vocab_size)});
  hooks.release(head.module);
  if (head.softcap > 0) logits = cap_.forward(work, head.softcap, std::move(logits), work.dtype);
  if (!hooks.is_trainable(head.weight)) input_.reset();

  Buffer upcast;
  if (work.dtype != DType::fp32) {
    upcast = work.activation_fp32(head.vocab_size);
    device.run(Cast{logits.tensor(work.dtype), upcast.tensor(DType::fp32)});
  }
  log_probs_ = work.activation_fp32(head.vocab_size);
  device.run(LogSoftmax{work.matrix_fp32(upcast ? upcast : logits, head.vocab_size),
                        work.matrix_fp32(log_probs_, head.vocab_size)});
  upcast.reset();
  device.run(NllLoss{.log_probs = work.matrix_fp32(log_probs_, head.vocab_size),
                     .labels = labels_.tensor(DType::int64),
                     .sum = loss});
  if (keeps_logits_) kept_ = std::move(logits);
}

Buffer PlainLoss::backward(const Workspace& work, ModuleHooks& hooks, const Projection& head,
                           double factor, const WeightGradient& take_weight) {
  Device& device = *work.device;
  Buffer d_logits = logits_gradient(work, head, factor);
  if (head.softcap > 0) {
    d_logits = cap_.backward(work, head.softcap, std::move(d_logits), work.dtype);
  }

  hooks.fetch(head.module);
  Buffer d_weight;
  if (hooks.is_trainable(head.weight)) {
    d_weight = work.gradient(head.vocab_size * head.size);
    device.run(Gemm{.transpose_a = Transpose::yes,
                    .a = work.matrix(d_logits, head.vocab_size),
                    .b = work.matrix(input_, head.size),
                    .c = head.matrix(d_weight.tensor(work.dtype))});
  }
  Buffer d_input = work.activation(head.size);
  device.run(Gemm{.a = work.matrix(d_logits, head.vocab_size),
                  .b = head.matrix(hooks.parameter(head.weight)),
                  .c = work.matrix(d_input, head.size)});
  take_weight(std::move(d_weight));
  hooks.release(head.module);
  input_.reset();
  return d_input;
}

Buffer PlainLoss::logits_gradient(const Workspace& work, const Projection& head, double factor) {
  Device& device = *work.device;
  const std::int64_t words = head.vocab_size;
  Buffer d_log_probs = work.activation_fp32(words);
  device.run(NllLossBackward{.labels = labels_.tensor(DType::int64),
                             .loss_scale = factor,
                             .out = work.matrix_fp32(d_log_probs, words)});
  labels_.reset();
  Buffer d_fp32 = work.activation_fp32(words);
  device.run(LogSoftmaxBackward{.d_log_probs = work.matrix_fp32(d_log_probs, words),
                                .log_probs = work.matrix_fp32(log_probs_, words),
                                .d_logits = work.matrix_fp32(d_fp32, words)});
  d_log_probs.reset();
  log_probs_.reset();
  if (work.dtype == DType::fp32) return d_fp32;
  Buffer d_logits = work.activation(words);
  device.run(Cast{d_fp32.tensor(DType::fp32), d_logits.tensor(work.dtype)});
  return d_logits;
}

}  // namespace dstune::layers
