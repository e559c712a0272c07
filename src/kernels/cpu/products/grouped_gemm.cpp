#include <cassert>
#include <cstring>

#include "core/device/operations/gemm.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

Matrix rows_of(const Matrix& matrix, std::int64_t begin, std::int64_t end) {
  Matrix part = matrix;
  part.data = static_cast<std::byte*>(matrix.data) +
              begin * matrix.stride * static_cast<std::int64_t>(size_of(matrix.dtype));
  part.rows = end - begin;
  return part;
}

/// The matrix of group `group` of `count` that lie one below the other.
Matrix part_of(const Matrix& matrix, std::int64_t group, std::int64_t count) {
  const std::int64_t rows = matrix.rows / count;
  return rows_of(matrix, group * rows, (group + 1) * rows);
}

/// f(group, first row, row behind the last) for all groups.
template <class F>
void for_groups(const RowGroups& groups, F f) {
  const auto* const ends = elements<std::int32_t>(groups.ends);
  std::int64_t begin = 0;
  for (std::int64_t group = 0; group < groups.count; ++group) {
    f(group, begin, std::int64_t{ends[group]});
    begin = ends[group];
  }
}

}  // namespace

void CpuDevice::compute(const GroupedGemm& op) {
  assert(op.a.rows == op.c.rows && op.b.rows % op.groups.count == 0);
  for_groups(op.groups, [&](std::int64_t group, std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    compute(Gemm{.transpose_b = op.transpose_b,
                 .a = rows_of(op.a, begin, end),
                 .b = part_of(op.b, group, op.groups.count),
                 .c = rows_of(op.c, begin, end)});
  });
}

void CpuDevice::compute(const GroupedGemmByRows& op) {
  assert(op.a.rows == op.b.rows && op.c.rows == op.groups.count * op.a.cols);
  for_groups(op.groups, [&](std::int64_t group, std::int64_t begin, std::int64_t end) {
    const Matrix c = part_of(op.c, group, op.groups.count);
    if (begin == end) {
      std::memset(c.data, 0, c.size());
      return;
    }
    compute(Gemm{.transpose_a = Transpose::yes,
                 .a = rows_of(op.a, begin, end),
                 .b = rows_of(op.b, begin, end),
                 .c = c});
  });
}

}  // namespace dstune::cpu
