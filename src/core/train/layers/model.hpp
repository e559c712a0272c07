// Forward and backward of one family's model.
#pragma once

#include <cstdint>

#include "core/device/dtype.hpp"
#include "core/device/tensor.hpp"
#include "core/experiment/activation_checkpointing.hpp"
#include "core/experiment/loss_settings.hpp"
#include "core/model/attention_kind.hpp"
#include "core/train/layers/module_hooks.hpp"

namespace dstune {

/// Whose linear layers run: torch's, or DeepSpeed's of stage 3 (memory_efficient_linear). The
/// weight's gradient is a view with the one, a tensor of its own with the other, which matters
/// where it is one of several of the same tensor: autograd adds to a tensor in place, but never to
/// a view.
enum class LinearLayers { torch, memory_efficient };

/// One micro-batch of a rank, and how it is computed.
struct MicroBatch {
  std::int64_t size = 1;  ///< sequences
  std::int64_t sequence_length = 0;
  DType dtype = DType::fp32;  ///< storage of activations and parameters
  LinearLayers linear = LinearLayers::torch;
  AttentionKind attention = AttentionKind::sdpa;
  LossSettings loss = {};
  ActivationCheckpointing checkpointing = {};
  bool checkpoints_synchronize = false;  ///< see StepConfig
};

/// The true computation of a model, written once for every Device. It allocates what PyTorch would
/// keep for backward, category activations, and frees it when backward has used it.
class Model {
 public:
  Model() = default;
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Adds to `loss` (fp32, one element) the mean next-token cross-entropy of `tokens` (int64,
  /// size * sequence_length; the labels are the tokens shifted by one, the last position of
  /// a sequence counts nothing).
  /// @param seed  of the dropout masks of this micro-step
  virtual void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) = 0;

  /// After forward, once. Hands every gradient of factor * loss to the hooks.
  virtual void backward(ModuleHooks& hooks, double factor) = 0;
};

}  // namespace dstune
