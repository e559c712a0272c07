// torch.nn.CrossEntropyLoss on a tape, and what it consists of.
#pragma once

#include <vector>

#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// torch.nn.functional.log_softmax() of rows, in their own type.
Value log_softmax(Tape& on, const Value& x);

/// A part of the loss: `share` times the mean over the rows whose label is >= 0 is added to `loss`
/// (fp32, one element). Nothing where no label counts; PyTorch says NaN.
/// @param log_probs  (rows, classes)
/// @param labels     int64, one per row
/// @param factor     backward gives the gradient of `factor` * the loss; read then
/// @param loss       empty: it has been added, and forward runs again for what is saved
/// @returns what has the loss's node
Value nll_loss(Tape& on, const Value& log_probs, const Value& labels, const double& factor,
               Tensor loss, double share = 1);

/// nll_loss() of the log-softmax of logits (rows, classes), in their own type.
Value cross_entropy(Tape& on, const Value& logits, const Value& labels, const double& factor,
                    Tensor loss);

/// Of losses that have been added up on the device.
Value sum_of_losses(Tape& on, const std::vector<Value>& losses);

}  // namespace dstune::nn
