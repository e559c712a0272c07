// Room for DeBERTa's products with relative positions, and numbers that both passes need.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/device/operations/scale.hpp"
#include "core/train/families/deberta/deberta_relative_table.hpp"
#include "core/train/layers/workspace.hpp"

namespace dstune::deberta {

/// How a distance, query minus key, becomes a row of the table: for c2p, and for p2c.
inline constexpr std::int64_t kOfQuery = 1;
inline constexpr std::int64_t kOfKey = -1;

inline Buffer new_buffer(const layers::Workspace& work, std::int64_t count) {
  return make_buffer(*work.device, MemoryCategory::activations, count, work.dtype);
}

/// A new tensor beside `in`.
inline Buffer times(const layers::Workspace& work, const Buffer& in, double factor) {
  const Tensor from = in.tensor(work.dtype);
  Buffer out = new_buffer(work, from.numel);
  work.device->run(ScaleTo{from, factor, out.tensor(work.dtype)});
  return out;
}

/// One number for each row of the table and each query (key) of all heads.
inline Matrix product_rows(const layers::Workspace& work, const AttentionShape& shape,
                           const RelativeTable& table, const Buffer& products) {
  return as_matrix(products.tensor(work.dtype), shape.rows() * shape.heads, table.rows());
}

}  // namespace dstune::deberta
