// The head of T5ForConditionalGeneration, and its loss.
#pragma once

#include <cstdint>

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::t5 {

/// cross_entropy(lm_head(scale * x), labels) in the logits' own type: only the log-softmax is
/// saved, and backward has three tensors of the logits' size at its highest.
class T5Head {
 public:
  T5Head(const ModelSpec& spec, const ModelNames& names);

  /// @param x       (M, h)
  /// @param labels  int64 (M), which live until backward
  /// @param loss    fp32, one element: the mean is added to it
  void forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x, Tensor labels,
               Tensor loss);

  /// @param[out] d_tied  of a tied weight, this part of its gradient; else the hooks get it
  /// @returns the gradient of factor * loss by x
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, double factor, Buffer& d_tied);

 private:
  Buffer scaled(const layers::Workspace& work, Buffer x) const;
  Buffer logits_gradient(const layers::Workspace& work, double factor);

  std::int64_t words_;
  bool tied_;
  double scale_;  ///< 1: none
  layers::Linear lm_head_;

  Tensor labels_;
  Buffer input_;
  Buffer log_probs_;
};

}  // namespace dstune::t5
