// The head and the loss of a causal language model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/train/layers/losses/loss.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// lm_head, a linear layer without a bias, and the next-token cross-entropy of its logits as
/// Workspace::loss says.
struct Head {
  std::size_t module;
  std::size_t weight;       ///< tensor (V, h)
  std::int64_t size;        ///< h
  std::int64_t vocab_size;  ///< V
  bool is_tied;             ///< another module uses the weight too
  double softcap = 0;       ///< of the logits (final_logit_softcapping); 0: none

  std::unique_ptr<CausalLoss> causal_loss{};  ///< made by the first forward

  /// @param x  (M, h)
  /// @param loss  fp32, one element: the mean over all positions but the last of each sequence is
  ///              added to it
  void forward(const Workspace& work, ModuleHooks& hooks, Buffer x, Tensor tokens, Tensor loss);

  /// @param[out] d_tied  where the weight is tied, this part of its gradient (V, h): its owner adds
  ///                     the others before the hooks get it. Otherwise they get it here.
  /// @returns the gradient of factor * loss by x (M, h)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, double factor, Buffer& d_tied);

 private:
  Projection projection() const { return {module, weight, size, vocab_size, softcap}; }
};

}  // namespace dstune::layers
