#include "core/train/layers/head.hpp"

#include <array>
#include <bit>
#include <utility>

namespace dstune::layers {

namespace {

const std::int64_t* integers(const Buffer& buffer) {
  return static_cast<const std::int64_t*>(buffer.data());
}

}  // namespace

void Head::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, const std::int64_t* tokens,
                   Tensor loss) {
  Device& device = *work.device;
  input = std::move(x);
  labels = work.activation_fp32(2);  // int64
  device.next_tokens(tokens, work.sequence_length, work.rows(),
                     static_cast<std::int64_t*>(labels.data()));

  hooks.fetch(module);
  Buffer logits = work.activation(vocab_size);
  device.gemm(Transpose::no, Transpose::yes, work.matrix(input, size),
              as_matrix(hooks.parameter(weight), vocab_size, size), 0,
              work.matrix(logits, vocab_size));
  hooks.release(module);

  Buffer upcast;
  if (work.dtype != DType::fp32) {
    upcast = work.activation_fp32(vocab_size);
    device.cast(logits.tensor(work.dtype), upcast.tensor(DType::fp32));
  }
  log_probs = work.activation_fp32(vocab_size);
  device.log_softmax(work.matrix_fp32(upcast ? upcast : logits, vocab_size),
                     work.matrix_fp32(log_probs, vocab_size));
  upcast.reset();
  device.nll_loss(work.matrix_fp32(log_probs, vocab_size), integers(labels), loss);
}

Buffer Head::backward(const Workspace& work, ModuleHooks& hooks, double factor, Buffer& d_tied) {
  Device& device = *work.device;
  const Buffer d_logits = logits_gradient(work, factor);

  hooks.fetch(module);
  Buffer d_weight = work.gradient(vocab_size * size);
  device.gemm(Transpose::yes, Transpose::no, work.matrix(d_logits, vocab_size),
              work.matrix(input, size), 0,
              as_matrix(d_weight.tensor(work.dtype), vocab_size, size));
  Buffer d_input = work.activation(size);
  device.gemm(Transpose::no, Transpose::no, work.matrix(d_logits, vocab_size),
              as_matrix(hooks.parameter(weight), vocab_size, size), 0, work.matrix(d_input, size));
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
  device.nll_loss_backward(integers(labels), factor, work.matrix_fp32(d_log_probs, vocab_size));
  labels.reset();
  Buffer d_fp32 = work.activation_fp32(vocab_size);
  device.log_softmax_backward(work.matrix_fp32(d_log_probs, vocab_size),
                              work.matrix_fp32(log_probs, vocab_size),
                              work.matrix_fp32(d_fp32, vocab_size));
  d_log_probs.reset();
  log_probs.reset();
  if (work.dtype == DType::fp32) return d_fp32;
  Buffer d_logits = work.activation(vocab_size);
  device.cast(d_fp32.tensor(DType::fp32), d_logits.tensor(work.dtype));
  return d_logits;
}

}  // namespace dstune::layers
