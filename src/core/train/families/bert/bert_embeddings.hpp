// The embeddings of BERT: words, token types and positions, added up, normed, dropped out.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/bert/bert.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/embedding_table.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::bert {

/// Every token has type 0, as where there is no second sentence. For RoBERTa, whose positions
/// depend on where padding is, each token has a position of its own; the others look them up once
/// for all sequences.
class Embeddings {
 public:
  Embeddings(const ModelSpec& spec, const ModelNames& names);

  /// @param tokens  int64 (M); must stay what they are until backward
  /// @returns (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Tensor tokens,
                 std::uint64_t seed);

  /// Hands all gradients to the hooks, in the order of autograd: the words' last.
  /// @param of_head  what the head adds to the words' gradient, if it shares their table
  void backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_out, Buffer of_head);

  std::size_t word_table() const { return words_.weight; }

 private:
  Tensor positions() const { return position_numbers_.tensor(DType::int64); }
  Tensor types() const { return type_numbers_.tensor(DType::int64); }
  Matrix position_rows(const layers::Workspace& work, const Buffer& rows) const;
  void make_numbers(const layers::Workspace& work);
  void positions_backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_sum);
  void types_backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_sum);
  void words_backward(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_sum,
                      Buffer of_head);

  std::int64_t size_;
  std::int64_t first_position_;
  bool per_token_;  ///< positions
  layers::EmbeddingTable words_;
  std::optional<layers::EmbeddingTable> types_;
  layers::EmbeddingTable positions_;
  layers::Norm norm_;
  layers::DropoutLayer dropout_;

  // Of the micro-step that runs.
  Tensor tokens_;
  Buffer position_numbers_;  ///< int64 (M), or (sequence_length)
  Buffer type_numbers_;      ///< int64 (M)
  Buffer sum_;               ///< (M, h), saved by the norm
  Buffer stats_;
};

}  // namespace dstune::bert
