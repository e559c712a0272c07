#include <cassert>

#include "core/device/operations/quantize.hpp"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/elements.cuh"
#include "kernels/cuda/kernels/quantization/quantized.cuh"

namespace dstune::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kPacks = 4;  // by a thread, all read before any is written

template <class T, int kBits, bool kPacked>
__global__ void __launch_bounds__(kThreads)
    dequantize(const std::int8_t* in, const float* steps, std::int64_t size,
               std::int64_t group_packs, std::int64_t packs, T* out) {
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads * kPacks + threadIdx.x;
  Integers held[kPacks];
  float step[kPacks];
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const std::int64_t pack = first + p * kThreads;
    if (pack >= packs) break;
    const std::int64_t group = quotient(pack, group_packs);
    const std::int64_t i = (pack - group * group_packs) * kQuantizedWidth;
    held[p] = load_integers<kBits, kPacked>(in + packed_size(group * size, kBits), i, size);
    step[p] = steps[group];
  }
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const std::int64_t pack = first + p * kThreads;
    if (pack >= packs) return;
    const std::int64_t group = quotient(pack, group_packs);
    const std::int64_t i = (pack - group * group_packs) * kQuantizedWidth;
    store_floats<kPacked>(out + group * size, i, size, held[p], step[p]);
  }
}

}  // namespace

void CudaDevice::compute(const Dequantize& op) {
  const std::int64_t groups = op.steps.numel;
  const std::int64_t size = group_size(op.out.numel, op.steps);
  assert(size * groups == op.out.numel && packed_size(op.out.numel, op.bits) == op.in.numel);
  const std::int64_t group_packs = (size + kQuantizedWidth - 1) / kQuantizedWidth;
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    T* const out = elements<T>(op.out);
    const bool packed = is_packed(size, op.bits, op.in) && is_aligned<kQuantizedWidth>(out);
    with_form(op.bits, packed, [&]<int kBits, bool kPacked>() {
      launch(stream(), cover(groups * group_packs, kThreads, kPacks), dequantize<T, kBits, kPacked>,
             elements<const std::int8_t>(op.in), elements<const float>(op.steps), size, group_packs,
             groups * group_packs, out);
    });
  });
}

}  // namespace dstune::cuda
