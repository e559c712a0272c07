// T5Stack: the encoder or the decoder.
#pragma once

#include <cstdint>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/t5/t5_block.hpp"
#include "core/train/families/t5/t5_position_bias.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/embedding_table.hpp"
#include "core/train/layers/layer_stack.hpp"
#include "core/train/layers/rms_norm_layer.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::t5 {

class T5Stack {
 public:
  /// @param name  "encoder" or "decoder"
  /// @param own     of its sequences, and
  /// @param source  of the encoder's: both outlive the stack
  T5Stack(const ModelSpec& spec, const ModelNames& names, const std::string& name,
          const layers::Workspace& own, const layers::Workspace& source);

  /// @param tokens  int64 (M), which live until backward
  /// @param states  the encoder's, for the decoder
  /// @returns (M, h)
  Buffer forward(ModuleHooks& hooks, Tensor tokens, const Buffer* states, std::uint64_t seed);

  /// Frees what was saved.
  /// @param d_states  the gradient by `states`, which this makes
  /// @returns the gradient by the whole embedding
  Buffer backward(ModuleHooks& hooks, Buffer d_out, const Buffer* states, Buffer* d_states,
                  std::uint64_t seed);

 private:
  auto block_forward(const BlockInputs& inputs, std::uint64_t seed);
  Buffer embed_back(ModuleHooks& hooks, Buffer d_x);

  const layers::Workspace& own_;
  const layers::Workspace& source_;
  std::size_t module_;
  layers::EmbeddingTable embedding_;
  layers::DropoutLayer first_dropout_;
  layers::LayerStack<T5Block> blocks_;
  PositionBias bias_;
  PositionBias cross_bias_;
  layers::RmsNormLayer norm_;
  layers::DropoutLayer last_dropout_;  ///< the same module

  Tensor tokens_;
  Buffer norm_input_;
};

}  // namespace dstune::t5
