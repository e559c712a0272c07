// T5Block, of the encoder or of the decoder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/t5/t5_attention.hpp"
#include "core/train/families/t5/t5_mlp.hpp"
#include "core/train/families/t5/t5_position_bias.hpp"
#include "core/train/families/t5/t5_residual.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::t5 {

/// What all blocks of a stack are given in a micro-step.
struct BlockInputs {
  const layers::Workspace& own;     ///< of the stack's sequences
  const layers::Workspace& source;  ///< of the encoder's
  const Buffer* states;             ///< of the encoder, for a decoder's blocks; else nullptr
  Buffer* d_states;                 ///< in backward: the gradient by them
  PositionBias& bias;
  PositionBias& cross_bias;
};

class T5Block {
 public:
  /// @param stack  "encoder" or "decoder"
  T5Block(const ModelSpec& spec, const ModelNames& names, const std::string& stack,
          std::int64_t index);

  /// @param x  (M, h)
  /// @returns (M, h)
  Buffer forward(const BlockInputs& inputs, ModuleHooks& hooks, Buffer x, std::uint64_t seed);
  Buffer take_input() { return self_.layer.take_input(); }
  /// Frees what was saved.
  /// @returns the gradient by x
  Buffer backward(const BlockInputs& inputs, ModuleHooks& hooks, Buffer d_out, std::uint64_t seed);

 private:
  struct Attended {
    Residual layer;
    T5Attention attention;
  };

  Buffer attend_back(const BlockInputs& inputs, ModuleHooks& hooks, Buffer d_out,
                     std::uint64_t seed);
  Buffer cross_back(const BlockInputs& inputs, ModuleHooks& hooks, Buffer d_out,
                    std::uint64_t seed);

  std::size_t module_;
  Attended self_;
  std::optional<Attended> cross_;
  Residual mlp_layer_;
  Mlp mlp_;
};

}  // namespace dstune::t5
