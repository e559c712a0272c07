#include "core/train/layers/head.hpp"

#include <utility>

#include "core/device/operations/copy.hpp"
#include "core/device/operations/gemm.hpp"
#include "core/device/operations/log_softmax.hpp"
#include "core/device/operations/nll_loss.hpp"

namespace dstune::layers {

void Head::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, Tensor tokens,
                   Tensor loss) {
  Device& device = *work.device;
  input = std::move(x);
  labels = make_buffer(device, MemoryCategory::activations, work.rows(), DType::int64);
  device.run(NextTokens{
      .tokens = tokens, .sequence = work.sequence_length, .labels = labels.tensor(DType::int64)});

  hooks.fetch(module);
  Buffer logits = work.activation(vocab_size);
  device.run(Gemm{.transpose_b = Transpose::yes,
                  .a = work.matrix(input, size),
                  .b = as_matrix(hooks.parameter(weight), vocab_size, size),
                  .c = work.matrix(logits, vocab_size)});
  hooks.release(module);

  Buffer upcast;
  if (work.dtype != DType::fp32) {
    upcast = work.activation_fp32(vocab_size);
    device.run(Cast{logits.tensor(work.dtype), upcast.tensor(DType::fp32)});
  }
  log_probs = work.activation_fp32(vocab_size);
  device.run(LogSoftmax{work.matrix_fp32(upcast ? upcast : logits, vocab_size),
                        work.matrix_fp32(log_probs, vocab_size)});
  upcast.reset();
  device.run(NllLoss{.log_probs = work.matrix_fp32(log_probs, vocab_size),
                     .labels = labels.tensor(DType::int64),
                     .sum = loss});
}

Buffer Head::backward(const Workspace& work, ModuleHooks& hooks, double factor, Buffer& d_tied) {
  Device& device = *work.device;
  const Buffer d_logits = logits_gradient(work, factor);

  hooks.fetch(module);
  Buffer d_weight = work.gradient(vocab_size * size);
  device.run(Gemm{.transpose_a = Transpose::yes,
                  .a = work.matrix(d_logits, vocab_size),
                  .b = work.matrix(input, size),
                  .c = as_matrix(d_weight.tensor(work.dtype), vocab_size, size)});
  Buffer d_input = work.activation(size);
  device.run(Gemm{.a = work.matrix(d_logits, vocab_size),
                  .b = as_matrix(hooks.parameter(weight), vocab_size, size),
                  .c = work.matrix(d_input, size)});
  if (is_tied) {
    d_tied = std::move(d_weight);
  } else {
    hooks.gradient_ready(weight, std::move(d_weight));
  }
  hooks.release(module);
  input.reset();
  return d_input;
}

Buffer Head::logits_gradient(const Workspace& work, double factor) {
  Device& device = *work.device;
  Buffer d_log_probs = work.activation_fp32(vocab_size);
  device.run(NllLossBackward{.labels = labels.tensor(DType::int64),
                             .loss_scale = factor,
                             .out = work.matrix_fp32(d_log_probs, vocab_size)});
  labels.reset();
  Buffer d_fp32 = work.activation_fp32(vocab_size);
  device.run(LogSoftmaxBackward{.d_log_probs = work.matrix_fp32(d_log_probs, vocab_size),
                                .log_probs = work.matrix_fp32(log_probs, vocab_size),
                                .d_logits = work.matrix_fp32(d_fp32, vocab_size)});
  d_log_probs.reset();
  log_probs.reset();
  if (work.dtype == DType::fp32) return d_fp32;
  Buffer d_logits = work.activation(vocab_size);
  device.run(Cast{d_fp32.tensor(DType::fp32), d_logits.tensor(work.dtype)});
  return d_logits;
}

}  // namespace dstune::layers
