// The gradient of a weight that the head shares with the embedding of tokens.
#pragma once

#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// The sum of both parts, in `of_head`. Autograd's sum with what is a view is a third tensor beside
/// the two (losses/loss.hpp says when): it is held for that moment, but the sum is written over the
/// first: the same bytes move. Empty if both are: the weight is frozen.
Buffer sum_of_tied(const Workspace& work, Buffer of_head, Buffer of_embedding);

}  // namespace dstune::layers
