// One encoder block of BERT: y = norm(x + attention(x)), then last_norm(y + mlp(y)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/model/bert/bert.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/bert/bert_block_tail.hpp"
#include "core/train/families/bert/bert_names.hpp"
#include "core/train/layers/attention.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/scopes.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::bert {

/// What PyTorch keeps of one block for backward (docs/deepspeed-step.md, "What a block keeps"): per
/// token and in elements 8 h + 2 f with gelu, beside 4 a + 16 bytes of fp32 and one byte per
/// element for each dropout of rows.
class EncoderBlock {
 public:
  /// @param spec  must outlive the block
  /// @param index  0 <= index < num_layers
  EncoderBlock(const ModelSpec& spec, const ModelNames& names, std::int64_t index);

  /// @param x  (M, h)
  /// @returns the block's output (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x, std::uint64_t seed);
  /// Afterwards x is still there, see forget_input().
  Buffer take_input() { return std::move(input_); }

  /// Nobody else holds x any more: it goes unless it is saved.
  void forget_input(const layers::Workspace& /*work*/) {
    if (!saves_input_) input_.reset();
  }

  /// Frees everything saved, each buffer when its last reader is done.
  /// @param d_out  gradient by the output (M, h)
  /// @returns the gradient by the input (M, h)
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_out,
                  std::uint64_t seed);

 private:
  EncoderBlock(const ModelSpec& spec, const ModelNames& names, std::int64_t index,
               const BlockNames& called, const std::string& name);

  void attend(const layers::Workspace& work, ModuleHooks& hooks, std::uint64_t seed);
  void attend_backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_attention,
                       const Buffer& d_input, std::uint64_t seed);
  AttentionShape attention_shape(const layers::Workspace& work, std::uint64_t seed) const;
  /// Nothing of an empty buffer.
  Heads heads(const layers::Workspace& work, const Buffer& rows) const;

  const ModelSpec& spec_;
  std::int64_t index_;

  layers::Scopes scopes_;
  layers::Linear query_;
  layers::Linear key_;
  layers::Linear value_;
  layers::AttentionLayer attention_;
  BlockTail tail_;

  bool saves_input_ = true;  ///< of the forward that ran
  Buffer input_;             ///< (M, h), saved by query, key and value
  Buffer q_;                 ///< (M, h), as k and v
  Buffer k_;
  Buffer v_;
};

}  // namespace dstune::bert
