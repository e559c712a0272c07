// torch.nn.CrossEntropyLoss of logits whose labels are given.
#pragma once

#include <cstdint>

#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// The mean over the rows whose label is >= 0, in the logits' own type, as BertForMaskedLM and the
/// models of sequence classification have it: only the log-softmax is saved, and backward has three
/// tensors of the logits' size at its highest. Nothing where no label counts; PyTorch says NaN.
struct LabelLoss {
  std::int64_t classes;  ///< columns of the logits

  Buffer labels{};     ///< int64, one per row
  Buffer log_probs{};  ///< (rows, classes)

  /// @param logits  (rows, classes)
  /// @param given   int64, one per row
  /// @param loss    fp32, one element: the mean is added to it
  void forward(const Workspace& work, Buffer logits, Buffer given, Tensor loss);

  /// @returns the gradient of factor * loss by the logits
  Buffer backward(const Workspace& work, double factor);
};

}  // namespace dstune::layers
