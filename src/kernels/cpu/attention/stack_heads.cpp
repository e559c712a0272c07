#include <algorithm>
#include <cassert>

#include "core/device/operations/attention.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// Row i of head h of sequence b.
template <class T>
T* row_of(const Heads& heads, const AttentionShape& shape, std::int64_t b, std::int64_t h,
          std::int64_t i) {
  return row<T>(heads.matrix, b * shape.sequence + i) + h * heads.stride;
}

/// f(b, h, i) for every row of every head.
template <class F>
void for_head_rows(const Device& device, const AttentionShape& shape, std::int64_t heads, F f) {
  for (std::int64_t head = 0; head < shape.batch * heads; ++head) {
    device.tick();
    for (std::int64_t i = 0; i < shape.sequence; ++i) f(head / heads, head % heads, i);
  }
}

}  // namespace

void CpuDevice::compute(const StackHeads& op) {
  const AttentionShape& shape = op.shape;
  assert(op.in.matrix.dtype == op.out.dtype && shape.heads % op.heads == 0);
  assert(op.out.rows == shape.rows() * shape.heads && op.out.cols == shape.head_size);
  const std::int64_t times = shape.heads / op.heads;
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    for_head_rows(*this, shape, shape.heads, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
      std::copy_n(row_of<T>(op.in, shape, b, h / times, i), shape.head_size,
                  row<T>(op.out, (b * shape.heads + h) * shape.sequence + i));
    });
  });
}

void CpuDevice::compute(const SpreadHeads& op) {
  const AttentionShape& shape = op.shape;
  assert(op.out.matrix.dtype == op.in.dtype && shape.heads % op.heads == 0);
  assert(op.in.rows == shape.rows() * shape.heads && op.in.cols == shape.head_size);
  const std::int64_t times = shape.heads / op.heads;
  float* const sums = scratch(shape.head_size);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    for_head_rows(*this, shape, op.heads, [&](std::int64_t b, std::int64_t h, std::int64_t i) {
      std::fill_n(sums, shape.head_size, 0.0F);
      for (std::int64_t of = h * times; of < (h + 1) * times; ++of) {
        const T* const in = row<T>(op.in, (b * shape.heads + of) * shape.sequence + i);
#pragma omp simd
        for (std::int64_t l = 0; l < shape.head_size; ++l) sums[l] += to_float(in[l]);
      }
      convert(sums, row_of<T>(op.out, shape, b, h, i), shape.head_size);
    });
  });
}

}  // namespace dstune::cpu
