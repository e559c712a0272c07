// Forward and backward of one family's model.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/dtype.hpp"
#include "core/device/product_workspace.hpp"
#include "core/device/tensor.hpp"
#include "core/experiment/activation_checkpointing.hpp"
#include "core/experiment/loss_settings.hpp"
#include "core/model/attention_kind.hpp"
#include "core/train/module_hooks.hpp"

namespace dstune {

/// Which code runs the linear layers: torch's, or DeepSpeed's of stage 3 (memory_efficient_linear).
/// The weight's gradient is a view with torch's code, and a tensor of its own with DeepSpeed's.
/// That matters where it is one of several gradients of the same tensor: autograd adds to a tensor
/// in place, but never to a view.
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
  /// Embedded tokens need a gradient, although nothing before them is trained: transformers and
  /// PEFT call enable_input_require_grads() on a model with checkpointing.
  bool inputs_need_gradients = false;
  ProductWorkspace workspace = {};  ///< of each thread that multiplies
};

/// Where a sequence is among all tokens of a micro-batch.
struct TokenSpan {
  std::int64_t begin = 0;
  std::int64_t length = 0;

  bool operator==(const TokenSpan&) const = default;
};

/// How the sequences of one micro-batch lie in it.
struct RowLengths {
  std::int64_t rows = 1;
  std::int64_t length = 0;  ///< tokens of every row
  /// The places of the sequences; empty: every row is one sequence. Tokens that no sequence has are
  /// padding, behind the sequence of their row: they have no label, and the attention mask hides
  /// them.
  std::vector<TokenSpan> sequences = {};
  /// There is one row and no padding: the batch without borders between its sequences, as trainers
  /// hand it to flash-attn's varlen kernels. No sequence sees another, and positions begin anew in
  /// each.
  bool is_packed = false;

  std::int64_t tokens() const { return rows * length; }
  bool operator==(const RowLengths&) const = default;
};

/// The true computation of a model, written once for every Device. It allocates what PyTorch would
/// keep for backward (category activations), and frees each value when backward has used it.
class Model {
 public:
  Model() = default;
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Says how the sequences of the following micro-batches lie; before the first call there is no
  /// padding.
  /// @throws std::invalid_argument  if such a model takes no padding
  virtual void set_lengths(const RowLengths& lengths) = 0;

  /// Adds to `loss` (fp32, one element) the mean next-token cross-entropy of `tokens`: int64, size
  /// rows of sequence_length, or as set_lengths() says. The labels are the tokens shifted by one;
  /// the last position of a sequence does not count, nor does padding. The targets of a sequence to
  /// sequence model stand behind the tokens, and are its labels.
  /// @param seed  of the dropout masks of this micro-step
  virtual void forward(ModuleHooks& hooks, Tensor tokens, std::uint64_t seed, Tensor loss) = 0;

  /// Called once after each forward. Hands every gradient of factor * loss to the hooks.
  virtual void backward(ModuleHooks& hooks, double factor) = 0;
};

}  // namespace dstune
