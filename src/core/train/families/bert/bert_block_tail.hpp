// A block of BERT behind its attention: y = norm(x + out(attention)), then last_norm(y + mlp(y)).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/bert/bert_names.hpp"
#include "core/train/layers/activation.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/scopes.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::bert {

/// The steps kOut to kLastNorm of a block; what comes before them, with its scopes, is its owner's.
class BlockTail {
 public:
  /// @param index       of the block: its seeds depend on it
  /// @param block       its name
  /// @param activation  as in config.json
  BlockTail(const ModelSpec& spec, const ModelNames& names, std::int64_t index,
            const BlockNames& called, const std::string& block, std::string_view activation);

  /// @param attended  (M, h), which its owner keeps for backward; freed where nothing reads it
  /// @param is_read_again  the owner's backward reads it
  /// @param input     the block's (M, h)
  /// @returns the block's output (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer& attended,
                 bool is_read_again, const Buffer& input, std::uint64_t seed);

  struct Gradients {
    Buffer attended;
    Buffer input;  ///< what comes by the residual alone
  };
  /// Frees everything saved, each buffer when its last reader is done.
  /// @param d_out  gradient by the output (M, h)
  Gradients backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_out,
                     const Buffer& attended);

 private:
  Buffer mlp_forward(const layers::Workspace& work, ModuleHooks& hooks, std::uint64_t seed);
  Buffer mlp_backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_out);
  Buffer out_backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_sum,
                      const Buffer& attended);

  std::int64_t index_;

  layers::Scopes scopes_;
  layers::Linear out_;
  std::optional<layers::DropoutLayer> out_dropout_;
  layers::Norm norm_;
  layers::Linear inner_;
  layers::ActivationFunction activation_;
  layers::Linear outer_;
  layers::DropoutLayer dropout_;
  layers::Norm last_norm_;

  Buffer sum_;  ///< (M, h), x + attention(x), saved by norm
  Buffer norm_stats_;
  Buffer middle_;     ///< (M, h), output of norm
  Buffer activated_;  ///< (M, f)
  Buffer last_sum_;   ///< (M, h), saved by last_norm
  Buffer last_norm_stats_;
};

}  // namespace dstune::bert
