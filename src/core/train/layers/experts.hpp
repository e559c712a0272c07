// Experts whose weights are one tensor, as transformers 5 lays them out and runs them by default:
// grouped_mm_experts_forward of its integrations/moe.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/device/operations/activate.hpp"
#include "core/device/operations/grouped_gemm.hpp"
#include "core/model/model_parameters.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::layers {

struct ExpertSizes {
  std::int64_t count = 0;   ///< E
  std::int64_t chosen = 0;  ///< k, experts of a row
  std::int64_t outer = 0;   ///< h
  std::int64_t inner = 0;   ///< f
};

/// The S = M k pairs of a row and an expert, sorted by expert: down(f(gate(x)) up(x)) of each,
/// times its weight, summed up by row. Keeps of each pair x (h), gate and up (2 f), the activated
/// gate and the product (f each), down's result (h), the weight, and three int64; and E int32.
class Experts {
 public:
  /// @param activation  of those that are one kernel
  Experts(const ModelNames& names, const std::string& name, const ExpertSizes& sizes,
          std::string_view activation);

  /// @param x            (M, h)
  /// @param chosen       int64 (M k)
  /// @param weights      (M, k), of `weight_type`
  /// @param weight_type  the model's dtype or fp32: that of what is weighed, too
  /// @returns (M, h)
  Buffer forward(const Workspace& work, ModuleHooks& hooks, const Buffer& x, Tensor chosen,
                 const Buffer& weights, DType weight_type);

  /// Frees everything saved.
  /// @param[out] d_weights  (M, k)
  /// @returns the gradient by x (M, h)
  Buffer backward(const Workspace& work, ModuleHooks& hooks, const Buffer& d_out, DType weight_type,
                  Buffer& d_weights);

 private:
  std::int64_t pairs(const Workspace& work) const { return work.rows() * sizes_.chosen; }
  Buffer of_pairs(const Workspace& work, std::int64_t cols, DType dtype) const;
  /// A buffer of_pairs() as (S, cols).
  Matrix matrix(const Workspace& work, const Buffer& buffer, std::int64_t cols, DType dtype) const {
    return as_matrix(buffer.tensor(dtype), pairs(work), cols);
  }
  Matrix matrix(const Workspace& work, const Buffer& buffer, std::int64_t cols) const {
    return matrix(work, buffer, cols, work.dtype);
  }
  RowGroups groups() const { return {ends_.tensor(DType::int8), sizes_.count}; }
  Matrix gate_up_weight(const Tensor& tensor) const {
    return as_matrix(tensor, sizes_.count * 2 * sizes_.inner, sizes_.outer);
  }
  Matrix down_weight(const Tensor& tensor) const {
    return as_matrix(tensor, sizes_.count * sizes_.outer, sizes_.inner);
  }

  void sort(const Workspace& work, Tensor chosen);
  void compute(const Workspace& work, ModuleHooks& hooks);
  Buffer weigh(const Workspace& work, DType weight_type) const;
  Buffer unweigh(const Workspace& work, const Buffer& d_out, DType weight_type, Buffer& d_factors);
  Buffer down_back(const Workspace& work, ModuleHooks& hooks, Buffer d_result);
  Buffer activation_back(const Workspace& work, ModuleHooks& hooks, Buffer d_product);
  Buffer gate_up_back(const Workspace& work, ModuleHooks& hooks, Buffer d_gate_up);

  ExpertSizes sizes_;
  std::size_t module_;
  std::size_t gate_up_proj_;  // tensor
  std::size_t down_proj_;     // tensor
  std::size_t act_fn_;        // module
  Activation activation_;

  Buffer order_;    ///< int64 (S): see SortByExpert
  Buffer tokens_;   ///< int64 (S)
  Buffer places_;   ///< int64 (S)
  Buffer ends_;     ///< int32 (E)
  Buffer factors_;  ///< (S)
  Buffer input_;    ///< (S, h)
  Buffer gate_up_;  ///< (S, 2 f)
  Buffer activated_;
  Buffer product_;
  Buffer result_;  ///< (S, h)
};

}  // namespace dstune::layers
