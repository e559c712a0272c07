// The router of experts, as transformers 5 runs it: softmax in fp32, the k most likely.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

struct RouterSettings {
  std::int64_t inputs = 0;       ///< h
  std::int64_t experts = 0;      ///< E
  std::int64_t chosen = 0;       ///< k
  bool normalised = false;       ///< weights are divided by their sum
  bool weights_in_fp32 = false;  ///< not in the model's dtype
  bool keeps_logits = false;     ///< until take_logits(): somebody else reads them too
  std::optional<double> imbalance = std::nullopt;  ///< tokens go to experts by lot: ExpertDraw
};

/// Keeps the probabilities of all experts, which were chosen and, where weights are normalised,
/// these before it and their sums.
class TopKRouter {
 public:
  TopKRouter(const ModelNames& names, const std::string& name, const RouterSettings& settings);

  /// @param x  (M, h)
  /// @returns weights of the chosen (M, k), of weight_type()
  Buffer forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x, std::uint64_t seed);

  /// Frees what was saved.
  /// @param d_weights  by forward's result
  /// @param d_others   by the logits, from whoever else read them (M, E), or empty
  /// @param x          as forward's
  /// @returns the gradient by x (M, h)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, Buffer d_weights, Buffer d_others,
                  const Buffer& x);

  /// False: backward does not read x.
  bool keeps_input(const Workspace& work, const ModuleHooks& hooks) const {
    return linear_.keeps_input(work, hooks);
  }
  DType weight_type(const Workspace& work) const {
    return settings_.weights_in_fp32 ? DType::fp32 : work.dtype;
  }
  /// The experts of each row (M k), int64; from forward to backward.
  Tensor chosen() const { return chosen_.tensor(DType::int64); }
  /// (M, E), of forward.
  Buffer take_logits() { return std::move(logits_); }

 private:
  Buffer normalised(const Workspace& work, Buffer weights);
  Buffer normalised_back(const Workspace& work, Buffer d_weights);
  Matrix of_chosen(const Workspace& work, const Buffer& buffer) const {
    return work.matrix_fp32(buffer, settings_.chosen);
  }

  RouterSettings settings_;
  Linear linear_;

  Buffer logits_;
  Buffer probs_;   ///< fp32 (M, E)
  Buffer chosen_;  ///< int64 (M k)
  Buffer before_;  ///< fp32 (M, k)
  Buffer sums_;    ///< fp32 (M)
};

}  // namespace dstune::layers
