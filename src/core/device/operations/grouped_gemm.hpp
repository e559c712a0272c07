// Matrix products of groups of rows, each with a matrix of its own: grouped_mm of torch.
#pragma once

#include <cstdint>

#include "core/device/operations/gemm.hpp"
#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Group g is the rows from ends[g - 1], or 0, to ends[g]; all of one dtype.
struct RowGroups {
  Tensor ends;  ///< int8 (4 count), which are `count` int32, ascending
  std::int64_t count;
};

/// c's rows of group g = a's rows of it times op(b_g).
struct GroupedGemm {
  Transpose transpose_b = Transpose::no;
  RowGroups groups;
  Matrix a;  ///< (S, K)
  Matrix b;  ///< all b_g, one below the other, dense: (count K, N), transposed (count N, K)
  Matrix c;  ///< (S, N)
};

/// c_g = transposed(a's rows of group g) times b's rows of it; 0 where there are none.
struct GroupedGemmByRows {
  RowGroups groups;
  Matrix a;  ///< (S, M)
  Matrix b;  ///< (S, N)
  Matrix c;  ///< all c_g, one below the other, dense: (count M, N)
};

// How many rows a group has is not known before: all matrices move.
inline Work work_of(const GroupedGemm& op) {
  return {"gemm", 2 * count(op.c) * static_cast<double>(op.a.cols), {op.a, op.b}, {op.c}};
}
inline Work work_of(const GroupedGemmByRows& op) {
  return {"gemm", 2 * count(op.a) * static_cast<double>(op.b.cols), {op.a, op.b}, {op.c}};
}

}  // namespace dstune
