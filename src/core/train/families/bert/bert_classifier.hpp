// The classifier of sequences: the first token's state through dense, activation and a last layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/model/bert/bert.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/bert/bert_names.hpp"
#include "core/train/layers/activation.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/label_loss.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/scopes.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::bert {

/// What of a classifier has no name.
struct ClassifierTraits {
  std::string_view activation;  ///< as in config.json files
  std::int64_t num_labels = 2;
  double input_dropout = 0;  ///< where the first token's state drops out too
  bool loss_in_fp32 = false;
};

/// The first tokens' rows are a copy (batch, h) here, where PyTorch has a view; what that keeps
/// alive is kept here too.
class Classifier {
 public:
  Classifier(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch,
             Device& device);

  /// Of a model whose parts have these names.
  Classifier(const ModelSpec& spec, const ModelNames& names, const MicroBatch& batch,
             Device& device, const ClassifierNames& called, const ClassifierTraits& traits);

  /// @param work    of the whole batch
  /// @param x       (M, h)
  /// @param labels  int64 (batch)
  /// @param loss    fp32, one element: the mean over the sequences is added to it
  void forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x, Buffer labels,
               std::uint64_t seed, Tensor loss);

  /// Hands all gradients to the hooks.
  /// @returns the gradient of factor * loss by x (M, h)
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, double factor);

 private:
  Buffer first_rows(const layers::Workspace& work) const;
  Buffer cast(Buffer logits, DType from, DType to) const;
  Buffer all_rows(const layers::Workspace& work, Buffer d_first) const;

  std::int64_t size_;        ///< h
  layers::Workspace first_;  ///< of the first tokens alone
  layers::Scopes scopes_;
  std::optional<layers::DropoutLayer> input_dropout_;
  layers::Linear dense_;
  layers::ActivationFunction activation_;
  layers::DropoutLayer dropout_;
  layers::Linear out_;
  layers::Workspace of_loss_;  ///< of the first tokens, in the loss's type
  layers::LabelLoss loss_;

  Buffer states_;     ///< (M, h)
  Buffer input_;      ///< (batch, h), saved by dense
  Buffer activated_;  ///< (batch, h), saved by the activation
  Buffer dropped_;    ///< (batch, h), saved by out
};

}  // namespace dstune::bert
