// DeBERTa's table of relative positions, which the encoder makes ready for all its layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/device/operations/layer_norm.hpp"
#include "core/model/deberta/deberta.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/norm.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::deberta {

/// rel_embeddings.weight (w, h), normed where the config says so; without a norm its copy, where
/// PyTorch has the parameter itself.
class RelativeTable {
 public:
  RelativeTable(const ModelSpec& spec, const DebertaSettings& settings, const ModelNames& names);

  /// At the begin of the encoder's forward.
  void forward(const layers::Workspace& work, ModuleHooks& hooks);
  /// At its end: what only forward needs is freed.
  void end_forward();

  std::int64_t rows() const { return 2 * span_; }  ///< w
  std::int64_t span() const { return span_; }
  /// (w, h)
  const Buffer& values() const { return values_; }
  /// b(i - j) of FillDistances, int64 (sequence, sequence); until end_forward()
  Tensor distances() const { return distances_.tensor(DType::int64); }
  /// The table as one sequence.
  layers::Workspace workspace(layers::Workspace work) const;

  /// A layer's part of the gradient (w, h), in the order of backward. With the last one the whole
  /// is handed to the hooks, unless there is a norm to go through.
  void add_gradient(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_values);
  /// Behind the first layer's backward: hands the other gradients to the hooks.
  void backward(const layers::Workspace& work, ModuleHooks& hooks);

 private:
  Matrix matrix(const layers::Workspace& work, const Buffer& buffer) const;
  LayerNormSaved saved() const;
  void norm_forward(const layers::Workspace& work, ModuleHooks& hooks, Tensor table);

  std::int64_t layers_;
  std::int64_t size_;  ///< h
  std::int64_t span_;
  std::int64_t buckets_;
  std::int64_t most_distance_;
  bool drops_out_;
  std::size_t weight_;  ///< tensor
  std::optional<layers::Norm> norm_;

  // Of the micro-step that runs.
  Buffer distances_;
  Buffer values_;  ///< saved by the layers' projections
  Buffer stats_;
  Buffer d_values_;
  std::int64_t layers_left_ = 0;  ///< whose gradient is missing
};

}  // namespace dstune::deberta
