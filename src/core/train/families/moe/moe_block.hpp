// A router and its experts, in place of a layer's MLP: the SparseMoeBlock of Mixtral, Qwen2-MoE and
// Qwen3-MoE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "core/model/llama/llama.hpp"
#include "core/model/model_parameters.hpp"
#include "core/model/model_spec.hpp"
#include "core/train/families/llama/llama_mlp.hpp"
#include "core/train/layers/experts.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/router.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::llama {

/// experts(x), and sigmoid(gate(x)) shared(x) where there is a shared expert. Keeps x, what router
/// and experts keep, and of the shared expert what an MLP keeps, its result and sigmoid(gate(x)).
class MoeBlock {
 public:
  MoeBlock(const ModelSpec& spec, const LlamaSettings& settings, const ModelNames& names,
           const std::string& name);

  /// @param x     (M, h)
  /// @param seed  of experts by lot
  /// @returns (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, Buffer x, std::uint64_t seed);

  /// Frees everything saved.
  /// @returns the gradient by x
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out);

  /// Of the last forward.
  layers::TopKRouter& router() { return router_; }
  /// The gradient by the router's logits of another loss than what forward's result leads to; the
  /// next backward adds it.
  void add_to_logits(Buffer d_logits) { d_logits_ = std::move(d_logits); }

 private:
  /// Of a shared expert.
  struct Shared {
    LlamaMlp mlp;
    layers::Linear gate;
    Buffer out{};       ///< (M, h)
    Buffer openness{};  ///< (M), sigmoid(gate(x))
  };

  bool keeps_input(const layers::Workspace& work, const ModuleHooks& hooks) const;
  const Buffer& input() const { return shared_ ? shared_->mlp.input() : input_; }
  void add_shared(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& out);
  Buffer shared_gate_back(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                          Buffer& d_shared);

  std::int64_t size_;  // h
  std::size_t module_;
  layers::TopKRouter router_;
  layers::Experts experts_;
  std::optional<Shared> shared_;

  Buffer input_;
  Buffer d_logits_;
};

}  // namespace dstune::llama
