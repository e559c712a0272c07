// Products of groups of rows, made of one product for each group, for every backend that computes.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "core/device/operations/gemm.hpp"

namespace dstune {

/// The rows [begin, end) of `matrix`.
inline Matrix rows_between(const Matrix& matrix, std::int64_t begin, std::int64_t end) {
  Matrix part = matrix;
  part.data = static_cast<std::byte*>(matrix.data) +
              begin * matrix.stride * static_cast<std::int64_t>(size_of(matrix.dtype));
  part.rows = end - begin;
  return part;
}

/// The matrix of group `group` of `count` that lie one below the other.
inline Matrix part_of(const Matrix& matrix, std::int64_t group, std::int64_t count) {
  const std::int64_t rows = matrix.rows / count;
  return rows_between(matrix, group * rows, (group + 1) * rows);
}

/// multiply(product) for each group that has rows.
/// @param ends  op.groups.ends, where the host can read them
template <class Multiply>
void multiply_groups(const GroupedGemm& op, const std::int32_t* ends, Multiply multiply) {
  assert(op.a.rows == op.c.rows && op.b.rows % op.groups.count == 0);
  std::int64_t begin = 0;
  for (std::int64_t group = 0; group < op.groups.count; ++group) {
    const std::int64_t end = ends[group];
    if (begin < end) {
      multiply(Gemm{.transpose_b = op.transpose_b,
                    .a = rows_between(op.a, begin, end),
                    .b = part_of(op.b, group, op.groups.count),
                    .c = rows_between(op.c, begin, end)});
    }
    begin = end;
  }
}

/// The same, and clear(matrix) for the results of groups without rows.
template <class Multiply, class Clear>
void multiply_groups(const GroupedGemmByRows& op, const std::int32_t* ends, Multiply multiply,
                     Clear clear) {
  assert(op.a.rows == op.b.rows && op.c.rows == op.groups.count * op.a.cols);
  std::int64_t begin = 0;
  for (std::int64_t group = 0; group < op.groups.count; ++group) {
    const std::int64_t end = ends[group];
    const Matrix c = part_of(op.c, group, op.groups.count);
    if (begin < end) {
      multiply(Gemm{.transpose_a = Transpose::yes,
                    .a = rows_between(op.a, begin, end),
                    .b = rows_between(op.b, begin, end),
                    .c = c});
    } else {
      clear(c);
    }
    begin = end;
  }
}

}  // namespace dstune
