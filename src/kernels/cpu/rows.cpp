#include "core/device/operations/rows.hpp"

#include <cassert>
#include <cstring>

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

}  // namespace dstune::cpu
