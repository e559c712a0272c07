#include <stdexcept>

#include "core/train/layers/losses/chunked_loss.hpp"
#include "core/train/layers/losses/fused_loss.hpp"
#include "core/train/layers/losses/labelled_rows.hpp"
#include "core/train/layers/losses/loss.hpp"
#include "core/train/layers/losses/plain_loss.hpp"
#include "core/train/layers/losses/tiled_loss.hpp"

namespace dstune::layers {

std::unique_ptr<CausalLoss> make_causal_loss(const LossSettings& settings) {
  switch (settings.kind) {
    case LossKind::plain:
      return std::make_unique<PlainLoss>(settings.keep_logits);
    case LossKind::chunked:
      return std::make_unique<ChunkedLoss>();
    case LossKind::tiled:
      return std::make_unique<TiledLoss>();
    case LossKind::fused:
      return std::make_unique<FusedLoss>();
  }
  throw std::invalid_argument("no such loss");
}

// DeepSpeed's own linear makes a tensor of it, and the sum of several chunks is one.
bool weight_gradient_is_view(const Workspace& work) {
  if (work.loss.kind == LossKind::plain) return work.linear == LinearLayers::torch;
  return work.loss.kind == LossKind::chunked && labelled_rows(work) <= ChunkedLoss::kChunk;
}

}  // namespace dstune::layers
