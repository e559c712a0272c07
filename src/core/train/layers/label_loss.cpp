#include "core/train/layers/label_loss.hpp"

#include <utility>

#include "core/device/operations/log_softmax.hpp"
#include "core/device/operations/nll_loss.hpp"

namespace dstune::layers {

void LabelLoss::forward(const Workspace& work, Buffer logits, Buffer given, Tensor loss) {
  labels = std::move(given);
  log_probs = work.activation(classes);
  work.device->run(LogSoftmax{work.matrix(logits, classes), work.matrix(log_probs, classes)});
  work.device->run(NllLoss{.log_probs = work.matrix(log_probs, classes),
                           .labels = labels.tensor(DType::int64),
                           .sum = loss});
}

Buffer LabelLoss::backward(const Workspace& work, double factor) {
  const Buffer d_log_probs = work.activation(classes);
  work.device->run(NllLossBackward{.labels = labels.tensor(DType::int64),
                                   .loss_scale = factor,
                                   .out = work.matrix(d_log_probs, classes)});
  labels.reset();
  Buffer d_logits = work.activation(classes);
  work.device->run(LogSoftmaxBackward{.d_log_probs = work.matrix(d_log_probs, classes),
                                      .log_probs = work.matrix(log_probs, classes),
                                      .d_logits = work.matrix(d_logits, classes)});
  log_probs.reset();
  return d_logits;
}

}  // namespace dstune::layers
