// What relative positions add to DeBERTa's scores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/device/operations/attention.hpp"
#include "core/model/deberta/deberta.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/deberta/deberta_relative_table.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::deberta {

/// For c2p and p2c each: the products of all queries (keys) with all rows of the projected table,
/// of which each pair of query and key gathers the one for its distance. Kept for backward, as
/// torch.gather() and torch.bmm() save them: those products (w numbers per token and head), the
/// projected table once for every sequence of the batch, 8 bytes of index for each pair, and the
/// table where it drops out.
class PositionScores {
 public:
  /// @param self  name of the attention's module
  PositionScores(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names,
                 std::int64_t index, const std::string& self);

  /// @param shape  its scale is that of all scores
  /// @param q, k   stacks of heads (batch * heads * sequence, head_size), kept by their owner
  /// @returns (batch * heads * sequence, sequence)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, const AttentionShape& shape,
                 const Buffer& q, const Buffer& k, const RelativeTable& table, std::uint64_t seed);

  struct Gradients {
    Buffer q;  ///< empty without c2p
    Buffer k;  ///< empty without p2c
  };
  /// Frees everything saved.
  /// @param of_projections  the hooks that get the gradients of the projections: SharedGradients
  ///                        where these are those of queries and keys
  Gradients backward(const layers::Workspace& work, ModuleHooks& hooks, ModuleHooks& of_projections,
                     const AttentionShape& shape, const Buffer& d_scores, const Buffer& q,
                     const Buffer& k, RelativeTable& table);

 private:
  /// c2p or p2c.
  struct Side {
    layers::Linear projection;
    std::int64_t sign;  ///< of distances, as rows of the table

    Buffer rows{};      ///< (batch * heads * w, head_size), the projected table
    Buffer products{};  ///< (batch * heads * sequence, w)
    Buffer index{};     ///< int64 (sequence, sequence)
    Buffer d_rows{};    ///< in backward: the gradient by rows
  };

  void project(const layers::Workspace& work, ModuleHooks& hooks, Side& side,
               const RelativeTable& table);
  Buffer project_backward(const layers::Workspace& work, ModuleHooks& hooks, Side& side,
                          const RelativeTable& table);
  Buffer gather(const layers::Workspace& work, const AttentionShape& shape, Side& side,
                const Buffer& heads, const RelativeTable& table) const;
  /// @returns the gradient by `heads`
  Buffer gather_backward(const layers::Workspace& work, const AttentionShape& shape, Side& side,
                         const Buffer& d_scores, const Buffer& heads,
                         const RelativeTable& table) const;
  AttentionShape table_shape(const RelativeTable& table) const;

  std::int64_t index_;
  std::int64_t heads_;
  std::int64_t size_;  ///< h
  bool shares_;
  layers::DropoutLayer dropout_;
  std::optional<Side> c2p_;
  std::optional<Side> p2c_;

  Buffer dropped_;  ///< (w, h), where the table drops out
};

}  // namespace dstune::deberta
