// The embeddings of DeBERTa: words, and positions and token types where it has them, added up,
// projected to the hidden size, normed, masked, dropped out.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/deberta/deberta.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/embedding_table.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::deberta {

/// Every token has type 0, and none is masked: the mask, a number per token, is kept all the same.
class DebertaEmbeddings {
 public:
  DebertaEmbeddings(const ModelSpec& spec, const DebertaSettings& settings,
                    const ModelNames& names);

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
  void make_numbers(const layers::Workspace& work);
  Buffer sum_of_tables(const layers::Workspace& work, ModuleHooks& hooks);
  void positions_backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_sum);

  std::int64_t size_;            ///< h
  std::int64_t embedding_size_;  ///< e
  layers::EmbeddingTable words_;
  std::optional<layers::EmbeddingTable> positions_;
  std::optional<layers::EmbeddingTable> types_;
  std::optional<layers::Linear> projection_;
  layers::Norm norm_;
  layers::DropoutLayer dropout_;

  // Of the micro-step that runs.
  Tensor tokens_;
  Buffer position_numbers_;  ///< int64 (sequence_length)
  Buffer type_numbers_;      ///< int64 (M)
  Buffer embedded_;          ///< (M, e), saved by the projection
  Buffer sum_;               ///< (M, h), saved by the norm
  Buffer stats_;
  Buffer mask_;  ///< (M, 1)
};

}  // namespace dstune::deberta
