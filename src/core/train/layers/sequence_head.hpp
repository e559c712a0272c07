// The classifier of sequences that transformers puts on any decoder.
#pragma once

#include <cstdint>

#include "core/train/layers/label_loss.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// GenericForSequenceClassification of transformers 5.23, and GPT2ForSequenceClassification:
/// "score", a linear layer without a bias, of every token, of which the last one of each sequence
/// counts. Labels are drawn by the micro-step's seed. That no token is padding, and so which is the
/// last, transformers finds out by some kernels on token numbers, which are not run here.
struct SequenceHead {
  Linear score;

  LabelLoss label_loss{.classes = score.out};
  Buffer input{};  ///< (M, h)

  /// @param x     (M, h)
  /// @param loss  fp32, one element: the mean over the sequences is added to it
  void forward(const Workspace& work, ModuleHooks& hooks, Buffer x, std::uint64_t seed,
               Tensor loss);
  /// Hands the gradient of the weight to the hooks.
  /// @returns the gradient of factor * loss by x (M, h)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, double factor);
};

}  // namespace dstune::layers
