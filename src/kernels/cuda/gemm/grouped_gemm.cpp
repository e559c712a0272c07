// A product for each group, as torch does it where it has no kernel for all at once: the host waits
// to know how many rows each has.
#include <algorithm>
#include <cassert>
#include <vector>

#include "core/device/operations/gemm.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

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
void for_groups(const std::vector<std::int32_t>& ends, F f) {
  std::int64_t begin = 0;
  std::int64_t group = 0;
  for (const std::int64_t end : ends) {
    f(group++, begin, end);
    begin = end;
  }
}

}  // namespace

std::vector<std::int32_t> CudaDevice::ends_of(const RowGroups& groups) {
  assert(groups.ends.size() <= Gpu::kStaging);
  copy_and_wait(gpu_.staging(), groups.ends.data, groups.ends.size(), cudaMemcpyDeviceToHost);
  const auto* const ends = static_cast<const std::int32_t*>(gpu_.staging());
  return {ends, ends + groups.count};
}

void CudaDevice::compute(const GroupedGemm& op) {
  assert(op.a.rows == op.c.rows && op.b.rows % op.groups.count == 0);
  for_groups(ends_of(op.groups), [&](std::int64_t group, std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    products_.run({.transpose_b = op.transpose_b,
                   .a = rows_of(op.a, begin, end),
                   .b = part_of(op.b, group, op.groups.count),
                   .c = rows_of(op.c, begin, end)},
                  stream());
  });
}

void CudaDevice::compute(const GroupedGemmByRows& op) {
  assert(op.a.rows == op.b.rows && op.c.rows == op.groups.count * op.a.cols);
  for_groups(ends_of(op.groups), [&](std::int64_t group, std::int64_t begin, std::int64_t end) {
    const Matrix c = part_of(op.c, group, op.groups.count);
    if (begin == end) {
      DSTUNE_CUDA_CHECK(cudaMemsetAsync(c.data, 0, c.size(), stream()));
      return;
    }
    products_.run({.transpose_a = Transpose::yes,
                   .a = rows_of(op.a, begin, end),
                   .b = rows_of(op.b, begin, end),
                   .c = c},
                  stream());
  });
}

}  // namespace dstune::cuda
