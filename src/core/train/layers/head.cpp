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

void Head::forward(const Workspace& work, ZeroEngine& engine, Buffer x, const std::int64_t* tokens,
                   Tensor loss) {
  const std::int64_t h = work.model.hidden_size;
  const std::int64_t vocab = work.model.vocab_size;
  Device& device = *work.device;
  input = std::move(x);
  labels = work.activation_fp32(2);  // int64
  device.next_tokens(tokens, work.sequence_length, work.rows(),
                     static_cast<std::int64_t*>(labels.data()));

  engine.fetch(module);
  Buffer logits = work.activation(vocab);
  device.gemm(Transpose::no, Transpose::yes, work.matrix(input, h),
              as_matrix(engine.parameter(0), vocab, h), 0, work.matrix(logits, vocab));
  engine.release(module);

  Buffer upcast;
  if (work.dtype != DType::fp32) {
    upcast = work.activation_fp32(vocab);
    device.cast(logits.tensor(work.dtype), upcast.tensor(DType::fp32));
  }
  log_probs = work.activation_fp32(vocab);
  device.log_softmax(work.matrix_fp32(upcast ? upcast : logits, vocab),
                     work.matrix_fp32(log_probs, vocab));
  upcast.reset();
  device.nll_loss(work.matrix_fp32(log_probs, vocab), integers(labels), loss);
}

Buffer Head::backward(const Workspace& work, ZeroEngine& engine, double factor, Buffer& d_wte) {
  const std::int64_t h = work.model.hidden_size;
  const std::int64_t vocab = work.model.vocab_size;
  Device& device = *work.device;
  const Buffer d_logits = logits_gradient(work, factor);

  engine.fetch(module);
  d_wte = work.gradient(vocab * h);
  device.gemm(Transpose::yes, Transpose::no, work.matrix(d_logits, vocab), work.matrix(input, h), 0,
              as_matrix(d_wte.tensor(work.dtype), vocab, h));
  Buffer d_input = work.activation(h);
  device.gemm(Transpose::no, Transpose::no, work.matrix(d_logits, vocab),
              as_matrix(engine.parameter(0), vocab, h), 0, work.matrix(d_input, h));
  engine.release(module);
  input.reset();
  return d_input;
}

Buffer Head::logits_gradient(const Workspace& work, double factor) {
  const std::int64_t vocab = work.model.vocab_size;
  Device& device = *work.device;
  Buffer d_log_probs = work.activation_fp32(vocab);
  device.nll_loss_backward(integers(labels), factor, work.matrix_fp32(d_log_probs, vocab));
  labels.reset();
  Buffer d_fp32 = work.activation_fp32(vocab);
  device.log_softmax_backward(work.matrix_fp32(d_log_probs, vocab),
                              work.matrix_fp32(log_probs, vocab), work.matrix_fp32(d_fp32, vocab));
  d_log_probs.reset();
  log_probs.reset();
  if (work.dtype == DType::fp32) return d_fp32;
  Buffer d_logits = work.activation(vocab);
  device.cast(d_fp32.tensor(DType::fp32), d_logits.tensor(work.dtype));
  return d_logits;
}

}  // namespace dstune::layers
