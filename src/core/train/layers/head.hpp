// The head and the loss: logits, log-softmax, next-token cross-entropy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Memory is that of Hugging Face's Trainer (zero-step.md 5.5): the logits die at the end of
/// forward, only the fp32 log-softmax is saved, and backward has three tensors of 4 V bytes per
/// token at its highest.
struct Head {
  std::size_t module;
  std::size_t weight;       ///< tensor (V, h)
  std::int64_t size;        ///< h
  std::int64_t vocab_size;  ///< V
  bool is_tied;             ///< another module uses the weight too

  Buffer input{};      ///< (M, h), output of ln_f
  Buffer log_probs{};  ///< fp32 (M, V)
  Buffer labels{};     ///< int64 (M)

  /// @param x  (M, h)
  /// @param loss  fp32, one element: the mean over all positions but the last of each sequence is
  ///              added to it
  void forward(const Workspace& work, ModuleHooks& hooks, Buffer x, Tensor tokens, Tensor loss);

  /// @param[out] d_tied  where the weight is tied, this part of its gradient (V, h): its owner adds
  ///                     the others before the hooks get it. Otherwise they get it here.
  /// @returns the gradient of factor * loss by x (M, h)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, double factor, Buffer& d_tied);

 private:
  Buffer logits_gradient(const Workspace& work, double factor);
};

}  // namespace dstune::layers
