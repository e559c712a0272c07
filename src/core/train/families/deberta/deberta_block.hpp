// One layer of DeBERTa: BERT's block with disentangled attention.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/model/deberta/deberta.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/bert/bert_block_tail.hpp"
#include "core/train/families/deberta/deberta_attention.hpp"
#include "core/train/families/deberta/deberta_relative_table.hpp"
#include "core/train/layers/scopes.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::deberta {

class DebertaBlock {
 public:
  /// @param index  0 <= index < num_layers
  DebertaBlock(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
               std::int64_t index);

  /// @param x      (M, h)
  /// @param table  of relative positions; nullptr without them
  /// @returns the layer's output (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x,
                 const RelativeTable* table, std::uint64_t seed);

  /// Forward's x, which is kept for backward.
  const Buffer& input() const { return input_; }
  Buffer take_input() { return std::move(input_); }

  /// Nobody else holds x any more: it goes unless it is saved.
  void forget_input(const layers::Workspace& /*work*/) {
    if (!saves_input_) input_.reset();
  }

  /// Frees everything saved.
  /// @param d_out  gradient by the output (M, h)
  /// @returns the gradient by the input (M, h)
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_out,
                  RelativeTable* table);

 private:
  DebertaBlock(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
               std::int64_t index, const std::string& name);

  layers::Scopes scopes_;
  DisentangledAttention attention_;
  bert::BlockTail tail_;

  bool saves_input_ = true;  ///< of the forward that ran
  Buffer input_;             ///< (M, h), saved by query, key and value
};

}  // namespace dstune::deberta
