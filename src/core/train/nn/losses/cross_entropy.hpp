// torch.nn.CrossEntropyLoss on a tape, and its parts.
#pragma once

#include <vector>

#include "core/train/tape/modules.hpp"

namespace dstune::nn {

/// torch.nn.functional.log_softmax() of rows, in their own type.
Value log_softmax(Tape& on, const Value& x);

/// A part of the loss: adds `share` times the mean over the rows whose label is >= 0 to `loss`
/// (fp32, one element). Adds nothing where no label counts; PyTorch's result is NaN then.
/// @param log_probs  (rows, classes)
/// @param labels     int64, one per row
/// @param factor     backward gives the gradient of `factor` * the loss, and reads it then
/// @param loss       empty: the loss has been added, and forward runs again for what it saves
/// @returns a value that has the loss's node
Value nll_loss(Tape& on, const Value& log_probs, const Value& labels, const double& factor,
               Tensor loss, double share = 1);

/// nll_loss() of the log-softmax of logits (rows, classes), in their own type.
Value cross_entropy(Tape& on, const Value& logits, const Value& labels, const double& factor,
                    Tensor loss);

/// The node of losses that have been added up on the device already.
Value sum_of_losses(Tape& on, const std::vector<Value>& losses);

}  // namespace dstune::nn
