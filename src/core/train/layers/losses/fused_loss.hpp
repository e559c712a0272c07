// The loss of Liger.
#pragma once

#include <cstdint>

#include "core/train/layers/losses/loss.hpp"

namespace dstune::layers {

/// Liger's fused linear cross-entropy (liger_kernel/ops/fused_linear_cross_entropy.py): forward
/// makes both gradients, a chunk of logits after the other, in one buffer; the weight's sum is in
/// the weight's dtype. Backward only scales them. As transformers' Trainer calls it: the sum over
/// all tokens, divided afterwards.
class FusedLoss final : public CausalLoss {
 public:
  void forward(const Workspace& work, ModuleHooks& hooks, const Projection& head, Buffer x,
               Tensor tokens, Tensor loss) override;
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Projection& head, double factor,
                  const WeightGradient& take_weight) override;

  /// Rows of a chunk: as many as have about as many logits as all rows have hidden values.
  static std::int64_t chunk_rows(std::int64_t rows, std::int64_t size, std::int64_t vocab_size);

 private:
  void add_weight_gradient(const Workspace& work, const Projection& head, const Matrix& d_logits,
                           const Matrix& x) const;

  Buffer d_input_;   // (M, h)
  Buffer d_weight_;  // (V, h)
};

}  // namespace dstune::layers
