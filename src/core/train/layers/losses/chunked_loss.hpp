// The loss of TRL 1.7 to 1.14.
#pragma once

#include <cstdint>

#include "core/train/layers/losses/loss.hpp"

namespace dstune::layers {

/// _chunked_cross_entropy_loss of TRL 1.14's SFTTrainer: 256 tokens at a time, each chunk within a
/// non-reentrant checkpoint, so that its logits are made again in backward. Entropy and guess of
/// every token, which TRL logs, are computed too.
class ChunkedLoss final : public CausalLoss {
 public:
  static constexpr std::int64_t kChunk = 256;  ///< rows

  void forward(const Workspace& work, ModuleHooks& hooks, const Projection& head, Buffer x,
               Tensor tokens, Tensor loss) override;
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Projection& head, double factor,
                  const WeightGradient& take_weight) override;

 private:
  Buffer rows_;    // (N, h)
  Buffer labels_;  // int64 (N)
};

}  // namespace dstune::layers
