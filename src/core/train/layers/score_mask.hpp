// The mask that eager attention adds to scores.
#pragma once

#include "core/device/operations/attention.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Some query does not see all keys: causal, a window, or padding.
bool hides_keys(const Workspace& work, const AttentionShape& shape);

/// (batch, sequence, sequence): 0 where a query sees a key, else the lowest number of the model's
/// type. Padding that causal hides from all but padding is not hidden twice.
Buffer score_mask(const Workspace& work, const AttentionShape& shape);

}  // namespace dstune::layers
