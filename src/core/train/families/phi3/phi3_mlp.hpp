// The MLP of Phi-3: Llama's, with gate and up as one product.
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

/// down(up f(gate)) with [gate up] = gate_up(x). Keeps x and, of inner_size each, gate, up, f's
/// result and the product. Gate and up are copied apart, where PyTorch reads them as they lie.
class Phi3Mlp {
 public:
  Phi3Mlp(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
          const std::string& name);

  /// As LlamaMlp's.
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x);
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out);

 private:
  Matrix half(const layers::Workspace& work, const Buffer& both, std::int64_t which) const;
  Buffer taken_from(const layers::Workspace& work, const Buffer& both, std::int64_t which) const;
  void multiply(const layers::Workspace& work, const Buffer& a, const Buffer& b,
                const Buffer& out) const;
  Buffer together(const layers::Workspace& work, const Buffer& d_gate, const Buffer& d_up) const;

  std::int64_t inner_size_;

  std::size_t module_;
  layers::Linear gate_up_proj_;
  layers::Linear down_proj_;
  layers::ActivationFunction activation_fn_;
  bool saves_result_;

  Buffer input_;
  Buffer activated_;
  Buffer up_;
  Buffer product_;
  Buffer gate_;  ///< its room where f saves its result: up keeps both halves alive in PyTorch
};

}  // namespace dstune::llama
