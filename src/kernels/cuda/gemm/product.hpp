// A matrix product as cuBLASLt sees it: column by column.
#pragma once

#include <cstdint>

#include "core/device/operations/gemm.hpp"
#include "core/device/tensor.hpp"

namespace dstune::cuda {

/// All that cuBLASLt's choice of an algorithm may depend on.
///
/// A row-major matrix is its transpose, column-major with the same stride. So C = op(A) op(B) is
/// computed as C^T = op(B)^T op(A)^T: `left` is B, `right` is A, and op() stays what it is.
struct ColumnMajorProduct {
  struct Operand {
    std::int64_t rows = 0;  ///< column-major
    std::int64_t cols = 0;
    std::int64_t stride = 0;       ///< elements between columns
    std::uint32_t alignment = 16;  ///< of the first byte: the power of two, at most 256
    std::int64_t step = 0;         ///< elements to the next product's

    auto operator<=>(const Operand&) const =
        default;  // NOLINT(modernize-use-nullptr): a false alarm
  };

  DType dtype = DType::fp32;         ///< of both sides
  DType result_dtype = DType::fp32;  ///< the same, or fp32
  std::int64_t count = 1;            ///< of products
  bool adds = false;                 ///< to what the result holds
  bool transpose_left = false;
  bool transpose_right = false;
  Operand left;
  Operand right;
  Operand result;
  std::uint32_t bias_alignment = 0;  ///< as Operand's; 0: without a bias

  // NOLINTNEXTLINE(modernize-use-nullptr): a false alarm
  auto operator<=>(const ColumnMajorProduct&) const = default;
};

ColumnMajorProduct product_of(const Gemm& op);

}  // namespace dstune::cuda
