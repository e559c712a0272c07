#include "core/device/operations/relative_positions.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

std::int64_t bucket_of(std::int64_t distance, std::int64_t middle, float log_of_most) {
  const std::int64_t size = std::abs(distance);
  if (size <= middle) return distance;
  const float log_of_size = std::log(static_cast<float>(size) / static_cast<float>(middle));
  const float beyond = std::ceil(log_of_size / log_of_most * static_cast<float>(middle - 1));
  const std::int64_t bucket = static_cast<std::int64_t>(beyond) + middle;
  return distance < 0 ? -bucket : bucket;
}

}  // namespace

void CpuDevice::compute(const FillDistances& op) {
  assert(op.out.dtype == DType::int64 && op.out.numel == op.sequence * op.sequence);
  auto* const out = elements<std::int64_t>(op.out);
  const std::int64_t middle = op.buckets / 2;
  const double most = static_cast<double>(op.most - 1) / static_cast<double>(middle);
  const float log_of_most = op.buckets == 0 ? 1 : std::log(static_cast<float>(most));
  for (std::int64_t i = 0; i < op.sequence; ++i) {
    for (std::int64_t j = 0; j < op.sequence; ++j) {
      out[i * op.sequence + j] = op.buckets == 0 ? i - j : bucket_of(i - j, middle, log_of_most);
    }
  }
}

void CpuDevice::compute(const ShiftDistances& op) {
  assert(op.in.dtype == DType::int64 && op.out.dtype == DType::int64);
  assert(op.in.numel == op.out.numel);
  const auto* const in = elements<std::int64_t>(op.in);
  auto* const out = elements<std::int64_t>(op.out);
  for (std::int64_t i = 0; i < op.out.numel; ++i) {
    out[i] = std::clamp<std::int64_t>(op.sign * in[i] + op.span, 0, 2 * op.span - 1);
  }
}

}  // namespace dstune::cpu
