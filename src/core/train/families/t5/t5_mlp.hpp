// T5DenseActDense and T5DenseGatedActDense.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/activation.hpp"
#include "core/train/layers/dropout_layer.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::t5 {

/// wo(dropout(act(wi(x)))), gated wo(dropout(act(wi_0(x)) * wi_1(x))).
class Mlp {
 public:
  Mlp(const ModelSpec& spec, const ModelNames& names, const std::string& name);

  /// @param x  (M, h)
  /// @returns (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x, std::uint64_t seed);

  /// Frees what was saved.
  /// @returns the gradient by x
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out);

 private:
  void gate(const layers::Workspace& work, ModuleHooks& hooks);
  Buffer gate_back(const layers::Workspace& work, ModuleHooks& hooks, Buffer d_product,
                   Buffer& d_activated);

  std::int64_t inner_size_;
  bool act_saves_result_;
  std::size_t module_;
  layers::Linear wi_;
  std::optional<layers::Linear> wi_1_;
  layers::ActivationFunction act_;
  layers::DropoutLayer dropout_;
  layers::Linear wo_;

  Buffer input_;
  Buffer activated_;  ///< (M, f), as those below
  Buffer up_;         ///< wi_1(x)
  Buffer product_;
  Buffer dropped_;  ///< what wo reads, where something drops out
};

}  // namespace dstune::t5
