// The memory that PyTorch gives to the libraries that multiply matrices.
#pragma once

#include "core/base/json_fwd.hpp"
#include "core/base/units.hpp"

namespace dstune {

/// CUBLASLT_WORKSPACE_SIZE's default.
constexpr Bytes kBiasWorkspace = Bytes{1} << 20U;

/// What each thread that multiplies holds of PyTorch's allocator (ATen/cuda/CublasHandlePool.cpp).
struct ProductWorkspace {
  Bytes of_products = 0;  ///< cuBLAS's, from the thread's first product on
  Bytes of_biases = 0;    ///< cuBLASLt's, from its first product that adds a bias on

  bool operator==(const ProductWorkspace&) const = default;
};

json::object to_json(const ProductWorkspace& workspace);
/// @throws std::exception  if `object` is none
ProductWorkspace product_workspace_from_json(const json::object& object);

}  // namespace dstune
