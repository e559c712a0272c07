// torch.nn.CrossEntropyLoss on a tape.
#pragma once

#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// The mean over the rows whose label is >= 0, in the logits' own type, is added to `loss` (fp32,
/// one element). Nothing where no label counts; PyTorch says NaN.
/// @param logits  (rows, classes)
/// @param labels  int64, one per row
/// @param factor  backward gives the gradient of `factor` * the loss; read then
/// @returns what has the loss's node
Value cross_entropy(Tape& on, const Value& logits, const Value& labels, const double& factor,
                    Tensor loss);

}  // namespace dstune::nn
