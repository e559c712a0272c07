#include <cassert>

#include "core/device/operations/shift_tokens.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct TokenBefore {
  const std::int64_t* labels;
  std::int64_t sequence;
  std::int64_t start;

  __device__ void operator()(std::int64_t i, std::int64_t& out) const {
    out = quotient(i, sequence) * sequence == i ? start : labels[i - 1];
  }
};

}  // namespace

void CudaDevice::compute(const ShiftTokens& op) {
  assert(op.labels.dtype == DType::int64 && op.out.dtype == DType::int64);
  assert(op.labels.numel == op.out.numel && op.out.numel % op.sequence == 0);
  for_each_element(stream(), op.out.numel,
                   TokenBefore{elements<const std::int64_t>(op.labels), op.sequence, op.start},
                   Out<std::int64_t>{elements<std::int64_t>(op.out)});
}

}  // namespace dstune::cuda
