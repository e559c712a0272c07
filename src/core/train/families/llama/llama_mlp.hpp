// The MLP of Llama and its kin: down(f(gate(x)) up(x)) (GLU variants, Shazeer 2020).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/model/llama/llama.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/layers/activation.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::llama {

/// Keeps x and, of inner_size each, what f keeps (gate(x)), f's result, up(x) and the product.
class LlamaMlp {
 public:
  LlamaMlp(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
           const std::string& name);

  /// @param x  (M, h)
  /// @returns (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x);

  /// Frees everything saved.
  /// @returns the gradient by x
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out);

  /// x, from forward to backward; with share_input() so also where the layers here are frozen.
  const Buffer& input() const { return input_; }
  /// Somebody else reads x too, and says when nobody does.
  void share_input() { is_shared_ = true; }
  void forget_input() { input_.reset(); }
  bool keeps_input(const layers::Workspace& work, const ModuleHooks& hooks) const {
    return gate_proj_.keeps_input(work, hooks) || up_proj_.keeps_input(work, hooks);
  }

 private:
  void multiply(const layers::Workspace& work, const Buffer& a, const Buffer& b,
                const Buffer& out) const;

  std::int64_t inner_size_;

  std::size_t module_;
  layers::Linear gate_proj_;
  layers::Linear up_proj_;
  layers::Linear down_proj_;
  layers::ActivationFunction act_fn_;
  bool act_saves_result_;
  bool is_shared_ = false;

  Buffer input_;
  Buffer activated_;
  Buffer up_;
  Buffer product_;
};

}  // namespace dstune::llama
