// The head of masked tokens: dense, activation, norm, and a decoder that shares the words' table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/model/bert/bert.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/bert/bert_names.hpp"
#include "core/train/layers/activation.hpp"
#include "core/train/layers/label_loss.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/scopes.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::bert {

class MaskedHead {
 public:
  /// @param word_table  tensor (V, h)
  MaskedHead(const ModelSpec& spec, const ModelNames& names, std::size_t word_table);

  /// Of a model whose parts have these names.
  /// @param activation  as in config.json
  /// @param size        columns behind dense and of the table, e
  MaskedHead(const ModelSpec& spec, const ModelNames& names, std::size_t word_table,
             const MaskedHeadNames& called, std::string_view activation, std::int64_t size);

  /// @param x       (M, h)
  /// @param labels  int64 (M); below 0: none
  /// @param loss    fp32, one element: the mean over the labels is added to it
  void forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x, Buffer labels,
               Tensor loss);

  /// Hands all gradients but the table's to the hooks.
  /// @param[out] d_table  this part of the table's gradient (V, e)
  /// @returns the gradient of factor * loss by x (M, h)
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, double factor,
                  Buffer& d_table);

 private:
  layers::Scopes scopes_;
  layers::Linear dense_;
  layers::ActivationFunction activation_;
  layers::Norm norm_;
  layers::Linear decoder_;
  std::optional<std::size_t> loss_module_;
  layers::LabelLoss loss_;

  Buffer input_;      ///< (M, h), saved by dense
  Buffer activated_;  ///< (M, e), saved by norm
  Buffer stats_;
  Buffer normed_;  ///< (M, e), saved by the decoder
};

}  // namespace dstune::bert
