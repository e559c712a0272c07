// One transformer block: x + attention(ln_1(x)), then that + mlp(ln_2(that)).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/model/module_places.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/workspace.hpp"
#include "core/train/zero/zero_engine.hpp"

namespace dstune::layers {

/// What PyTorch keeps of one block for backward (zero-step.md 5.4): per token and in elements 8 h +
/// 5 f, beside 4 a + 16 bytes of fp32 and one byte per element for each residual dropout.
struct Block {
  std::int64_t index = 0;  ///< 0 <= index < num_layers

  Buffer input;       ///< (M, h), saved by ln_1
  Buffer ln_1_stats;  ///< mean, rstd
  Buffer ln_1_out;    ///< (M, h)
  Buffer qkv;         ///< (M, 3h)
  Buffer attention;   ///< (M, h)
  Buffer lse;         ///< fp32 (batch * heads * sequence)
  Buffer attention_mask;
  Buffer middle;  ///< (M, h), the residual between attention and MLP, saved by ln_2
  Buffer ln_2_stats;
  Buffer ln_2_out;       ///< (M, h)
  Buffer inner;          ///< (M, f), output of c_fc
  Buffer tanh;           ///< (M, f), as the next two: see GeluSaved
  Buffer half_x;         ///< (M, f)
  Buffer one_plus_tanh;  ///< (M, f)
  Buffer activated;      ///< (M, f), output of gelu_new
  Buffer mlp_mask;

  /// @param x  (M, h)
  /// @returns the block's output (M, h)
  Buffer forward(const Workspace& work, ZeroEngine& engine, Buffer x, std::uint64_t seed);

  /// Frees everything saved, each buffer when its last reader is done.
  /// @param d_out  gradient by the output (M, h)
  /// @returns the gradient by the input (M, h)
  Buffer backward(const Workspace& work, ZeroEngine& engine, Buffer d_out, std::uint64_t seed);

 private:
  Buffer attention_forward(const Workspace& work, ZeroEngine& engine, std::uint64_t seed);
  Buffer mlp_forward(const Workspace& work, ZeroEngine& engine, std::uint64_t seed);
  Buffer attention_backward(const Workspace& work, ZeroEngine& engine, const Buffer& d_out,
                            std::uint64_t seed);
  Buffer mlp_backward(const Workspace& work, ZeroEngine& engine, const Buffer& d_out);
  AttentionShape attention_shape(const Workspace& work, std::uint64_t seed) const;
  GeluSaved gelu_saved(const Workspace& work) const;
  Norm norm(module_places::Place place, std::size_t first_tensor) const;
  Linear linear(module_places::Place place, std::size_t first_tensor, std::int64_t in,
                std::int64_t out) const;
};

}  // namespace dstune::layers
