// torch.nn.Embedding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/layers/module_hooks.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Tokens are int64, any number of them.
struct EmbeddingTable {
  std::size_t module;
  std::size_t weight;  ///< tensor (rows, size)
  std::int64_t rows;
  std::int64_t size;  ///< h
  bool is_trainable;  ///< else it has no gradient

  /// The module `name` with its "weight".
  EmbeddingTable(const ModelNames& names, const std::string& name, std::int64_t table_rows,
                 std::int64_t columns);
  /// Of a table that other modules have too.
  EmbeddingTable(const ModelNames& names, std::size_t own_module, std::size_t weight_tensor,
                 std::int64_t table_rows, std::int64_t columns)
      : module(own_module),
        weight(weight_tensor),
        rows(table_rows),
        size(columns),
        is_trainable(names.is_trainable(weight_tensor)) {}

  /// @returns the tokens' rows (tokens.numel, h), category activations
  Buffer forward(const Workspace& work, ModuleHooks& hooks, Tensor tokens) const;

  /// The dense gradient by the whole table, a tensor of its own as in PyTorch. Its owner fetches
  /// the module before, since no hook ends this backward: no gradient comes back to tokens.
  /// @param d_out  gradient by the tokens' rows (tokens.numel, h)
  /// @returns empty if the table is frozen
  Buffer gradient(const Workspace& work, const Buffer& d_out, Tensor tokens) const;
};

/// `first` + 0, 1, ... for each token of the micro-batch, or of one row if `positions` is as long;
/// packed sequences begin anew.
void fill_positions(const Workspace& work, Tensor positions, std::int64_t first);

}  // namespace dstune::layers
