// Disentangled attention (He et al. 2020): scores of contents, of contents with relative positions,
// and of these with contents. There is no fused kernel of it: it is eager whatever is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/device/operations/attention.hpp"
#include "core/model/deberta/deberta.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/deberta/deberta_position_scores.hpp"
#include "core/train/families/deberta/deberta_relative_table.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::deberta {

/// Kept for backward beside PositionScores, as PyTorch's tensors are: q, k, v and scaled keys by
/// heads, a byte of mask for each pair of tokens, softmax; with dropout a byte per score, and what
/// is left.
class DisentangledAttention {
 public:
  /// @param block  its name
  DisentangledAttention(const ModelSpec& spec, const DebertaSettings& settings,
                        const ModelNames& names, std::int64_t index, const std::string& block);

  Buffer out{};  ///< (M, h); what comes behind saves the same tensor

  /// Writes `out`.
  /// @param input  (M, h), which its owner keeps for backward
  /// @param table  of relative positions; nullptr without them
  void forward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& input,
               const RelativeTable* table, std::uint64_t seed);

  /// False: backward does not read the input.
  bool keeps_input(const layers::Workspace& work, const ModuleHooks& hooks) const {
    return query_.keeps_input(work, hooks) || key_.keeps_input(work, hooks) ||
           value_.keeps_input(work, hooks);
  }

  /// Frees everything saved.
  /// @param d_out    gradient by `out`
  /// @param d_input  the gradient by the input is added to it
  void backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_out,
                const Buffer& input, const Buffer& d_input, RelativeTable* table);

 private:
  AttentionShape shape(const layers::Workspace& work) const;
  Buffer project(const layers::Workspace& work, ModuleHooks& hooks,
                 const layers::Linear& projection, const Buffer& input) const;
  void project_backward(const layers::Workspace& work, ModuleHooks& hooks,
                        const layers::Linear& projection, Buffer d_stack, const Buffer& input,
                        const Buffer& d_input) const;
  void attend(const layers::Workspace& work, ModuleHooks& hooks, Buffer scores, std::uint64_t seed);
  void drop(const layers::Workspace& work, ModuleHooks& hooks, std::uint64_t seed);
  Buffer scores_gradient(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_probs);
  /// @param[out] d_v  stack of heads
  /// @returns the gradient by the softmax
  Buffer values_backward(const layers::Workspace& work, Buffer d_out, Buffer& d_v);
  /// Adds to the gradients that positions gave, or makes them.
  void products_backward(const layers::Workspace& work, Buffer d_scores,
                         PositionScores::Gradients& d);

  std::int64_t index_;
  std::int64_t size_;  ///< h
  std::int64_t heads_;
  double scale_;
  double dropout_probability_;
  bool shares_;
  bool keeps_keys_;  ///< scores of positions save them
  layers::Linear query_;
  layers::Linear key_;
  layers::Linear value_;
  std::size_t dropout_;  ///< module
  std::optional<PositionScores> positions_;

  Buffer q_;
  Buffer k_;
  Buffer v_;
  Buffer scaled_k_;
  Buffer hidden_;  ///< one byte per pair of tokens: 1 if the key is hidden, which none is
  Buffer softmax_;
  Buffer probs_;    ///< that multiplied v; empty: softmax_ itself
  Buffer dropped_;  ///< one byte per score: 1 if it is kept
};

}  // namespace dstune::deberta
