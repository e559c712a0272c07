#include "core/train/layers/head.hpp"

#include <utility>

namespace dstune::layers {

void Head::forward(const Workspace& work, ModuleHooks& hooks, Buffer x, Tensor tokens,
                   Tensor loss) {
  if (!causal_loss) causal_loss = make_causal_loss(work.loss);
  causal_loss->forward(work, hooks, projection(), std::move(x), tokens, loss);
}

Buffer Head::backward(const Workspace& work, ModuleHooks& hooks, double factor, Buffer& d_tied) {
  return causal_loss->backward(work, hooks, projection(), factor, [&](Buffer d_weight) {
    if (is_tied) {
      d_tied = std::move(d_weight);
    } else if (d_weight) {
      hooks.gradient_ready(weight, std::move(d_weight));
    }
  });
}

}  // namespace dstune::layers
