// Some rows of ChunkedLoss, forward and backward.
#pragma once

#include <cstdint>

#include "core/train/layers/losses/loss.hpp"
#include "core/train/layers/losses/soft_cap.hpp"

namespace dstune::layers {

/// Gradients that some rows alone give, in the model dtype.
struct ChunkGradients {
  Buffer rows;    ///< (rows, h)
  Buffer weight;  ///< (V, h); empty if it is frozen
};

/// TRL's _chunk() within torch.utils.checkpoint.
class LogitsChunk {
 public:
  /// @param x       (rows, h)
  /// @param labels  int64 (rows)
  /// @param share   of these rows among all that count
  /// All must outlive it.
  LogitsChunk(const Workspace& work, ModuleHooks& hooks, const Projection& head, Tensor x,
              Tensor labels, double share);

  /// Its part of the mean is added to `loss`.
  void forward(Tensor loss) const;
  /// Of factor * the mean.
  ChunkGradients backward(double factor) const;

 private:
  Buffer buffer(std::int64_t cols) const;
  Matrix logits_in(const Buffer& buffer) const;
  Matrix x() const;
  Buffer make_logits() const;
  Buffer capped(Buffer logits, SoftCap& cap) const;
  Buffer make_log_probs(const Buffer& logits) const;
  void log_guesses(const Buffer& logits) const;
  void log_entropy(const Buffer& log_probs) const;
  Buffer logits_gradient(Buffer log_probs, SoftCap& cap, double factor) const;

  const Workspace& work_;
  ModuleHooks& hooks_;
  const Projection& head_;
  Device& device_;
  Tensor x_;
  Tensor labels_;
  std::int64_t rows_;
  double share_;
};

}  // namespace dstune::layers
