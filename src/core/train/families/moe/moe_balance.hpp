// The loss that keeps experts evenly used, over all layers that have some.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/llama/llama.hpp"
#include "core/train/families/moe/moe_block.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::llama {

/// load_balancing_loss_func of transformers, times router_aux_loss_coef: where output_router_logits
/// is set, its models add it to the loss of the tokens. Keeps the softmax of each router's logits.
class RouterBalance {
 public:
  explicit RouterBalance(const ExpertSettings& experts)
      : experts_(experts.count), factor_(experts.balance) {}

  /// Behind the forward of one block.
  /// @param forgets  the block does, what it has chosen, before forward() here
  void take(MoeBlock& block, const layers::Workspace& work, bool forgets);

  /// Behind the forward of all blocks.
  /// @param loss  fp32, one element, which it is added to
  void forward(const layers::Workspace& work, Tensor loss);

  /// Before the backward of any: each block gets its gradient of factor times this loss.
  /// @param blocks  all that were taken, in this order; nullptr: it has no backward
  void backward(const layers::Workspace& work, const std::vector<MoeBlock*>& blocks, double factor);

 private:
  /// Of one block.
  struct Routes {
    Buffer logits;   ///< (M, E)
    Tensor experts;  ///< int64 (M k)
    Buffer copied;   ///< those, if the block forgets them
  };

  std::int64_t rows(const layers::Workspace& work) const {
    return work.rows() * static_cast<std::int64_t>(probs_.size());
  }

  std::int64_t experts_;
  double factor_;

  std::vector<Routes> routes_;
  std::vector<Buffer> probs_;  ///< by block: (M, E)
  Buffer counts_;              ///< fp32 (E)
};

}  // namespace dstune::llama
