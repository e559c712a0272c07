// The loss of Hugging Face's transformers.
#pragma once

#include "core/train/layers/losses/loss.hpp"
#include "core/train/layers/losses/soft_cap.hpp"

namespace dstune::layers {

/// ForCausalLMLoss of transformers (docs/deepspeed-step.md, "Loss"): the logits die at the end of
/// forward, only the fp32 log-softmax is saved, and backward has three tensors of 4 V bytes per
/// token at its highest. Where logits are capped, that is done in the model's type.
class PlainLoss final : public CausalLoss {
 public:
  explicit PlainLoss(bool keeps_logits) : keeps_logits_(keeps_logits) {}

  void forward(const Workspace& work, ModuleHooks& hooks, const Projection& head, Buffer x,
               Tensor tokens, Tensor loss) override;
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Projection& head, double factor,
                  const WeightGradient& take_weight) override;

 private:
  Buffer logits_gradient(const Workspace& work, const Projection& head, double factor);

  bool keeps_logits_;
  Buffer kept_;       // (M, V), the last forward's
  Buffer input_;      // (M, h)
  SoftCap cap_;       // (M, V)
  Buffer log_probs_;  // fp32 (M, V)
  Buffer labels_;     // int64 (M)
};

}  // namespace dstune::layers
