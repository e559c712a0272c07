#include <cassert>
#include <cmath>

#include "core/device/operations/relative_positions.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct Distance {
  std::int64_t sequence;
  std::int64_t middle;  // 0: no buckets
  float log_of_most;

  __device__ void operator()(std::int64_t index, std::int64_t& out) const {
    const std::int64_t query = quotient(index, sequence);
    const std::int64_t distance = query - (index - query * sequence);
    const std::int64_t size = distance < 0 ? -distance : distance;
    out = distance;
    if (middle == 0 || size <= middle) return;
    const float log_of_size = logf(static_cast<float>(size) / static_cast<float>(middle));
    const float beyond = ceilf(log_of_size / log_of_most * static_cast<float>(middle - 1));
    const std::int64_t bucket = static_cast<std::int64_t>(beyond) + middle;
    out = distance < 0 ? -bucket : bucket;
  }
};

struct Shift {
  std::int64_t sign;
  std::int64_t span;

  __device__ void operator()(std::int64_t, std::int64_t in, std::int64_t& out) const {
    const std::int64_t shifted = sign * in + span;
    const std::int64_t last = 2 * span - 1;
    out = shifted < 0 ? 0 : shifted > last ? last : shifted;
  }
};

}  // namespace

void CudaDevice::compute(const FillDistances& op) {
  assert(op.out.dtype == DType::int64 && op.out.numel == op.sequence * op.sequence);
  const std::int64_t middle = op.buckets / 2;
  const double most = static_cast<double>(op.most - 1) / static_cast<double>(middle);
  const float log_of_most = op.buckets == 0 ? 1.0F : std::log(static_cast<float>(most));
  for_each_element(stream(), op.out.numel, Distance{op.sequence, middle, log_of_most},
                   Out<std::int64_t>{elements<std::int64_t>(op.out)});
}

void CudaDevice::compute(const ShiftDistances& op) {
  assert(op.in.dtype == DType::int64 && op.out.dtype == DType::int64);
  assert(op.in.numel == op.out.numel);
  for_each_element(stream(), op.out.numel, Shift{op.sign, op.span},
                   In<std::int64_t>{elements<std::int64_t>(op.in)},
                   Out<std::int64_t>{elements<std::int64_t>(op.out)});
}

}  // namespace dstune::cuda
