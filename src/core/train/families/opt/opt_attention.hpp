// OPTAttention: four projections, and queries that are scaled before the product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/model/model_parameters.hpp"
#include "core/model/opt/opt.hpp"
#include "core/train/layers/attention.hpp"
#include "core/train/layers/linear.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::opt {

/// Keeps q, k and v (M, h) each, beside what attention itself keeps.
class OptAttention {
 public:
  /// @param name  of the module
  OptAttention(const ModelSpec& spec, const OptSettings& settings, const ModelNames& names,
               const std::string& name);

  /// @param x     (M, h); its owner keeps it for backward
  /// @param mask  layers::attention_mask() of shape()
  /// @param seed  of the dropout of attention
  /// @returns (M, h)
  Buffer forward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& x,
                 const Buffer& mask, std::uint64_t seed);
  /// Frees what was saved.
  /// @param seed  forward's
  /// @returns the gradient by x
  Buffer backward(const layers::Workspace& work, ModuleHooks& hooks, const Buffer& d_out,
                  const Buffer& x, std::uint64_t seed);

  AttentionShape shape(const layers::Workspace& work, std::uint64_t seed) const;
  /// True if backward reads x.
  bool keeps_input(const layers::Workspace& work, const ModuleHooks& hooks) const;

 private:
  /// Nothing of an empty buffer.
  Heads heads(const layers::Workspace& work, const Buffer& rows) const;
  /// In place: PyTorch's second tensor lives for this one kernel.
  void scale(const layers::Workspace& work, const Buffer& q) const;

  std::int64_t heads_;
  std::int64_t head_size_;
  double dropout_;
  std::size_t module_;
  layers::Linear q_proj_;
  layers::Linear k_proj_;
  layers::Linear v_proj_;
  layers::Linear out_proj_;

  Buffer q_;
  Buffer k_;
  Buffer v_;
  layers::AttentionLayer attention_{};
};

}  // namespace dstune::opt
