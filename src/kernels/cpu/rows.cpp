// Rows of matrices: copied, scaled, added up.
#include "core/device/operations/rows.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const CopyRows& op) {
  assert(op.in.rows == op.out.rows && op.in.cols == op.out.cols && op.in.dtype == op.out.dtype);
  const Bytes element = size_of(op.in.dtype);
  const auto* from = static_cast<const std::byte*>(op.in.data);
  auto* to = static_cast<std::byte*>(op.out.data);
  for (std::int64_t i = 0; i < op.in.rows; ++i) {
    std::memcpy(to, from, static_cast<std::size_t>(op.in.cols) * element);
    from += static_cast<std::size_t>(op.in.stride) * element;
    to += static_cast<std::size_t>(op.out.stride) * element;
  }
}

void CpuDevice::compute(const AddSum& op) {
  assert(op.values.dtype == DType::fp32 && op.sum.dtype == DType::fp32);
  const auto* const values = elements<float>(op.values);
  double total = 0;
  for (std::int64_t i = 0; i < op.values.numel; ++i) total += static_cast<double>(values[i]);
  *elements<float>(op.sum) += static_cast<float>(op.factor * total);
}

namespace {

float element(const Tensor& tensor, std::int64_t i) {
  return with_type(tensor.dtype, [&]<class T>(std::type_identity<T>) {
    return to_float(elements<T>(tensor)[i]);
  });
}

}  // namespace

void CpuDevice::compute(const ScaleRows& op) {
  assert(op.in.rows == op.out.rows && op.in.cols == op.out.cols && op.factors.numel == op.in.rows);
  float* const values = scratch(op.in.cols);
  for_rows(*this, op.in.rows, op.in.cols, [=](std::int64_t i) {
    load_row(op.in, i, values);
    const float factor = element(op.factors, i);
    for (std::int64_t j = 0; j < op.in.cols; ++j) values[j] *= factor;
    store_row(values, op.out, i);
  });
}

void CpuDevice::compute(const RowDots& op) {
  assert(op.a.rows == op.b.rows && op.a.cols == op.b.cols && op.out.numel == op.a.rows);
  const std::int64_t cols = op.a.cols;
  float* const a = scratch(2 * cols);
  float* const b = a + cols;
  for_rows(*this, op.a.rows, cols, [=](std::int64_t i) {
    load_row(op.a, i, a);
    load_row(op.b, i, b);
    const float sum = std::inner_product(a, a + cols, b, 0.0F);
    with_type(op.out.dtype,
              [&]<class T>(std::type_identity<T>) { elements<T>(op.out)[i] = from_float<T>(sum); });
  });
}

void CpuDevice::compute(const SumGroups& op) {
  assert(op.in.cols == op.out.cols && op.in.rows % op.out.rows == 0);
  const std::int64_t cols = op.in.cols;
  const std::int64_t size = op.in.rows / op.out.rows;
  float* const sums = scratch(2 * cols);
  float* const values = sums + cols;
  for_rows(*this, op.out.rows, size * cols, [=](std::int64_t i) {
    load_row(op.in, i * size, sums);
    for (std::int64_t j = 1; j < size; ++j) {
      load_row(op.in, i * size + j, values);
      std::transform(values, values + cols, sums, sums, std::plus<>());
    }
    store_row(sums, op.out, i);
  });
}

void CpuDevice::compute(const RepeatRows& op) {
  assert(op.in.cols == op.out.cols && op.out.rows % op.in.rows == 0);
  assert(op.in.dtype == op.out.dtype);
  const std::int64_t size = op.out.rows / op.in.rows;
  const Bytes bytes = static_cast<Bytes>(op.in.cols) * size_of(op.in.dtype);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, op.out.rows, op.out.cols, [=](std::int64_t i) {
      std::memcpy(row<T>(op.out, i), row<T>(op.in, i / size), bytes);
    });
  });
}

}  // namespace dstune::cpu
