// Hugging Face's RMSNorm: LlamaRMSNorm and its likes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/device/operations/rms_norm.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

/// Keeps what its chain of kernels keeps (docs/deepspeed-step.md, "What a block keeps"): per
/// element an fp32 copy of x, or x itself where that is fp32, and the normalised x, unless the
/// weight is frozen; an fp32 number per vector.
struct RmsNormLayer {
  std::size_t module;
  std::size_t weight;  ///< tensor (size)
  std::int64_t size;   ///< n, of a vector that is normalised
  double epsilon;
  std::int64_t vectors = 1;  ///< of each row: heads, where each is normalised for itself
  double offset = 0;         ///< 1 for Gemma's

  Buffer copy{};
  Buffer rrms{};
  Buffer normalised{};
  Buffer shifted{};  ///< fp32 (size): offset + weight, where there is an offset

  /// The module `name` with its "weight".
  RmsNormLayer(const ModelNames& names, const std::string& name, std::int64_t columns, double eps,
               std::int64_t vectors_of_row = 1, double weight_offset = 0);

  /// True if backward reads x: its owner keeps it until then. Otherwise nobody does.
  static bool keeps_input(const Workspace& work) { return work.dtype == DType::fp32; }

  /// @param x  (M, vectors * n)
  /// @returns y, likewise
  Buffer forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x);

  /// Frees what was saved; hands the weight's gradient to the hooks. The contents of x are lost.
  /// @param x  as forward's; empty unless keeps_input()
  /// @returns the gradient by x, in d_y's memory
  Buffer backward(const Workspace& work, ModuleHooks& hooks, Buffer d_y, const Buffer& x);

  /// Likewise, with d_y still whole.
  Buffer backward_beside(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                         const Buffer& x);

 private:
  std::int64_t elements(const Workspace& work) const { return work.rows() * vectors * size; }
  DType inner_type(const Workspace& work) const { return offset == 0 ? work.dtype : DType::fp32; }
  Matrix matrix(const Workspace& work, const Buffer& buffer, DType dtype) const;
  void make_normalised(const Workspace& work);
  void shift(const Workspace& work, const ModuleHooks& hooks);
  void differentiate(const Workspace& work, ModuleHooks& hooks, const Buffer& d_y,
                     const Buffer& d_x, const Buffer& x);
  RmsNormSaved saved(const Workspace& work, const Buffer& x) const;
};

}  // namespace dstune::layers
