// The loss of a causal language model, computed from the last hidden states as each library does
// it: with its kernels, its buffers and their lifetimes. All give the same numbers, up to rounding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/nn/linear.hpp"
#include "core/train/nn/tape_model.hpp"

namespace dstune::nn {

/// The LM head: logits = x W^T, or c tanh(x W^T / c) where there is a cap c.
struct LmHead {
  /// The module `name`, a linear layer without a bias or adapter.
  /// @param tied_weight  the tensor (V, h) that it shares with the embedding; none: it has its own
  /// @param softcap      the cap of the logits (final_logit_softcapping); 0: none
  LmHead(const ModelNames& names, const std::string& name, std::optional<std::size_t> tied_weight,
         double softcap = 0);

  Product product;
  double softcap;

  std::int64_t size() const { return product.in; }         ///< h
  std::int64_t vocab_size() const { return product.out; }  ///< V
  /// The weight, or its gradient, as a matrix (V, h).
  Matrix matrix(const Tensor& tensor) const { return as_matrix(tensor, vocab_size(), size()); }
  bool is_trainable(const Tape& on) const { return on.hooks().is_trainable(product.weight); }
  /// The parameters whose gradients a node gives that stands for the whole head.
  NodeParameters trained(const Tape& on) const {
    return is_trainable(on) ? NodeParameters{product.weight} : NodeParameters{};
  }
};

// Each of the four adds to input.loss the mean cross-entropy of the next tokens over all positions
// but the last of each sequence, and returns a value that has the loss's node. x is (M, h), and the
// head must outlive the step. Backward gives the gradients of `factor` * the loss, and reads
// `factor` then.

/// ForCausalLMLoss of transformers (docs/deepspeed-step.md, "Loss"). Logits are capped in the
/// model's type, if they are.
/// @param[out] logits  for a training loop that holds them; nullptr: they die with forward
Value plain_loss(Tape& on, const LmHead& head, const Value& x, const StepInput& input,
                 const double& factor, Value* logits = nullptr);

/// _chunked_cross_entropy_loss of TRL 1.14's SFTTrainer: it takes 256 tokens at a time, each chunk
/// within a non-reentrant checkpoint, so that the chunk's logits are made again in backward. The
/// entropy and the guess of every token, which TRL logs, are computed too.
Value chunked_loss(Tape& on, const LmHead& head, const Value& x, const StepInput& input,
                   const double& factor);

/// The size of the one buffer of logits: it has as many words also where the vocabulary is smaller.
struct LogitsTile {
  std::int64_t rows = 4096;
  std::int64_t words = 32768;
};

/// The fused head of TRL since 1.15 (trl/kernels/chunked_logprob.py), a torch.autograd.Function:
/// logits are made a tile at a time, in the model dtype, in one buffer. Forward keeps the logarithm
/// of each row's sum of exponentials; backward makes the tiles again and sums up both gradients in
/// fp32.
Value tiled_loss(Tape& on, const LmHead& head, const Value& x, const StepInput& input,
                 const double& factor, LogitsTile tile = {});

/// Liger's fused linear cross-entropy (liger_kernel/ops/fused_linear_cross_entropy.py), a
/// torch.autograd.Function: forward makes both gradients, one chunk of logits after the other, in
/// one buffer; the weight's sum is in the weight's dtype. Backward only scales them. It is called
/// as transformers' Trainer does: it gives the sum over all tokens, which is divided afterwards.
Value fused_loss(Tape& on, const LmHead& head, const Value& x, const StepInput& input,
                 const double& factor);

/// The rows of one chunk of fused_loss(): so many that they have about as many logits as all rows
/// have hidden values.
std::int64_t fused_chunk_rows(std::int64_t rows, std::int64_t size, std::int64_t vocab_size);

}  // namespace dstune::nn
