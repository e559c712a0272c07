#include "core/train/families/t5/t5_head.hpp"

#include <cmath>
#include <utility>

#include "core/device/operations/log_softmax.hpp"
#include "core/device/operations/nll_loss.hpp"
#include "core/device/operations/scale.hpp"
#include "core/model/t5/t5.hpp"

namespace dstune::t5 {

using layers::Workspace;

T5Head::T5Head(const ModelSpec& spec, const ModelNames& names)
    : words_(spec.vocab_size),
      tied_(settings_of(spec).tied),
      scale_(settings_of(spec).scales_output ? 1 / std::sqrt(static_cast<double>(spec.hidden_size))
                                             : 1),
      lm_head_(names.module("lm_head"), names.tensor(tied_ ? "shared.weight" : "lm_head.weight"),
               std::nullopt, spec.hidden_size, spec.vocab_size, layers::WeightOrder::out_in) {}

Buffer T5Head::scaled(const Workspace& work, Buffer x) const {
  if (scale_ == 1) return x;
  Buffer out = work.activation(lm_head_.in);
  work.device->run(ScaleTo{x.tensor(work.dtype), scale_, out.tensor(work.dtype)});
  return out;
}

void T5Head::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, Tensor labels,
                     Tensor loss) {
  labels_ = labels;
  input_ = scaled(work, std::move(x));
  const Buffer logits = lm_head_.forward(work, hooks, input_);
  log_probs_ = work.activation(words_);
  work.device->run(LogSoftmax{work.matrix(logits, words_), work.matrix(log_probs_, words_)});
  work.device->run(
      NllLoss{.log_probs = work.matrix(log_probs_, words_), .labels = labels_, .sum = loss});
}

Buffer T5Head::logits_gradient(const Workspace& work, double factor) {
  const Buffer d_log_probs = work.activation(words_);
  work.device->run(NllLossBackward{
      .labels = labels_, .loss_scale = factor, .out = work.matrix(d_log_probs, words_)});
  Buffer d_logits = work.activation(words_);
  work.device->run(LogSoftmaxBackward{.d_log_probs = work.matrix(d_log_probs, words_),
                                      .log_probs = work.matrix(log_probs_, words_),
                                      .d_logits = work.matrix(d_logits, words_)});
  log_probs_.reset();
  return d_logits;
}

Buffer T5Head::backward(const Workspace& work, ModuleHooks& hooks, double factor, Buffer& d_tied) {
  Buffer d_x;
  {
    const Buffer d_logits = logits_gradient(work, factor);
    d_x = lm_head_.backward(work, hooks, d_logits, input_, tied_ ? &d_tied : nullptr);
  }
  input_.reset();
  return scaled(work, std::move(d_x));
}

}  // namespace dstune::t5
