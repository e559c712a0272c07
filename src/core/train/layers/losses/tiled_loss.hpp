// The loss of TRL since 1.15.
#pragma once

#include <cstdint>

#include "core/train/layers/losses/loss.hpp"

namespace dstune::layers {

/// Of the one buffer of logits: as many words also where the vocabulary is smaller.
struct LogitsTile {
  std::int64_t rows = 4096;
  std::int64_t words = 32768;
};

/// The fused head of TRL (trl/kernels/chunked_logprob.py): logits are made a tile at a time, in the
/// model dtype, in one buffer. Forward keeps the logarithm of each row's sum, backward makes the
/// tiles again and sums up both gradients in fp32.
class TiledLoss final : public CausalLoss {
 public:
  explicit TiledLoss(LogitsTile tile = {}) : tile_(tile) {}

  void forward(const Workspace& work, ModuleHooks& hooks, const Projection& head, Buffer x,
               Tensor tokens, Tensor loss) override;
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Projection& head, double factor,
                  const WeightGradient& take_weight) override;

 private:
  LogitsTile tile_;
  Buffer rows_;      // (N, h)
  Buffer labels_;    // int64 (N)
  Buffer log_sums_;  // fp32 (N)
  Buffer entropy_;   // fp32 (N), saved for a gradient that never comes
};

}  // namespace dstune::layers
