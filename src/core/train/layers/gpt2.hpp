// GPT-2: forward and backward of one micro-batch, written once for every Device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/device.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/zero/zero_engine.hpp"

namespace dstune {

/// Whose linear layers run: torch's, or DeepSpeed's of stage 3 (memory_efficient_linear). The
/// weight's gradient is a view with the one, a tensor of its own with the other, which matters
/// where it is one of several of the same tensor: autograd adds to a tensor in place, but never to
/// a view.
enum class LinearLayers { torch, memory_efficient };

/// The true computation of Hugging Face's GPT2LMHeadModel with attn_implementation "sdpa" and
/// gelu_new. It allocates what PyTorch would keep for backward (zero-step.md 5.4, 5.5), category
/// activations, and frees it when backward has used it.
class Gpt2 {
 public:
  /// @param dtype  storage of activations and parameters
  Gpt2(const ModelSpec& model, std::int64_t micro_batch, std::int64_t sequence_length, DType dtype,
       Device& device, LinearLayers linear = LinearLayers::torch);
  ~Gpt2();
  Gpt2(const Gpt2&) = delete;
  Gpt2& operator=(const Gpt2&) = delete;

  /// Adds to `loss` (fp32, one element) the mean next-token cross-entropy of `tokens` (micro_batch
  /// * sequence_length on the device; the labels are the tokens shifted by one, the last position
  /// of a sequence counts nothing).
  /// @param seed  of the dropout masks of this micro-step
  void forward(ZeroEngine& engine, const std::int64_t* tokens, std::uint64_t seed, Tensor loss);

  /// After forward, once. Hands every gradient of factor * loss to the engine.
  void backward(ZeroEngine& engine, double factor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dstune
