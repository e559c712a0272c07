// The loss of a causal language model, from the last hidden states on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "core/experiment/loss_settings.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// The last layer, without a bias: logits = x W^T, or c tanh(x W^T / c) where there is a cap c.
struct Projection {
  std::size_t module;
  std::size_t weight;  ///< tensor (V, h)
  std::int64_t size;   ///< h
  std::int64_t vocab_size;
  double softcap = 0;  ///< 0: none

  Matrix matrix(const Tensor& tensor) const { return as_matrix(tensor, vocab_size, size); }
};

/// Takes the projection's gradient (V, h).
using WeightGradient = std::function<void(Buffer)>;

/// Mean next-token cross-entropy as one library computes it: with its kernels, its buffers and
/// their lifetimes. All kinds give the same numbers, up to rounding.
class CausalLoss {
 public:
  CausalLoss() = default;
  virtual ~CausalLoss() = default;
  CausalLoss(const CausalLoss&) = delete;
  CausalLoss& operator=(const CausalLoss&) = delete;

  /// @param x  (M, h)
  /// @param loss  fp32, one element: the mean over all positions but the last of each sequence is
  ///              added to it
  virtual void forward(const Workspace& work, ModuleHooks& hooks, const Projection& head, Buffer x,
                       Tensor tokens, Tensor loss) = 0;

  /// @param take_weight  called once, with the gradient of factor * loss by the weight; empty if
  ///                     that is frozen
  /// @returns the gradient of factor * loss by x (M, h)
  virtual Buffer backward(const Workspace& work, ModuleHooks& hooks, const Projection& head,
                          double factor, const WeightGradient& take_weight) = 0;
};

std::unique_ptr<CausalLoss> make_causal_loss(const LossSettings& settings);

/// True if PyTorch has the weight's gradient as a view, to which autograd never adds in place.
bool weight_gradient_is_view(const Workspace& work);

}  // namespace dstune::layers
