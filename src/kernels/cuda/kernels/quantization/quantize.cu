// As DeepSpeed's kernels: a block for each group, which holds the group in registers while it looks
// for the largest value. Of groups beyond that it reads the rest twice.
#include <algorithm>
#include <cassert>

#include "core/device/operations/quantize.hpp"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/elements.cuh"
#include "kernels/cuda/kernels/quantization/quantized.cuh"
#include "kernels/cuda/kernels/reductions.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 512;
constexpr int kHeldPacks = 4;  // by a thread

/// What a group is multiplied with.
struct GroupScale {
  float per_unit;  ///< 1 / step
  float step;
  bool finite;
};

/// @param largest  bits of the largest magnitude; NaN is above infinity
template <int kBits>
__device__ GroupScale scale_of(std::uint32_t largest) {
  if (largest >= 0x7f800000U) return {0, __uint_as_float(0x7fc00000U), false};
  if (largest == 0) return {1, 1, true};
  const float per_unit = static_cast<float>(1 << (kBits - 1)) / __uint_as_float(largest);
  if (__float_as_uint(per_unit) >= 0x7f800000U) return {1, 1, true};
  return {per_unit, 1 / per_unit, true};
}

__device__ std::uint32_t largest_of(const Floats& x, std::uint32_t largest) {
#pragma unroll
  for (float value : x.values) {
    const std::uint32_t magnitude = __float_as_uint(value) & 0x7fffffffU;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

template <int kBits>
__device__ Integers rounded(const Floats& x, const GroupScale& scale) {
  constexpr auto kLowest = static_cast<float>(-(1 << (kBits - 1)));
  constexpr auto kHighest = static_cast<float>((1 << (kBits - 1)) - 1);
  Integers integers;
#pragma unroll
  for (int k = 0; k < kQuantizedWidth; ++k) {
    const float value = fminf(fmaxf(x.values[k] * scale.per_unit, kLowest), kHighest);
    integers.values[k] = scale.finite ? __float2int_rn(value) : 0;
  }
  return integers;
}

/// Quantises what `values_at(i)` gives for the multiples i of kQuantizedWidth below `size`.
/// @param out  of this group
template <int kBits, bool kPacked, class F>
__device__ void quantize_group(const F& values_at, std::int64_t size, std::int8_t* out,
                               float* step) {
  const std::int64_t stride = std::int64_t{blockDim.x} * kQuantizedWidth;
  const std::int64_t first = std::int64_t{threadIdx.x} * kQuantizedWidth;
  Floats held[kHeldPacks] = {};
#pragma unroll
  for (int p = 0; p < kHeldPacks; ++p) {
    if (first + p * stride < size) held[p] = values_at(first + p * stride);
  }
  std::uint32_t largest = 0;
#pragma unroll
  for (int p = 0; p < kHeldPacks; ++p) largest = largest_of(held[p], largest);
  for (std::int64_t i = first + kHeldPacks * stride; i < size; i += stride) {
    largest = largest_of(values_at(i), largest);
  }
  const GroupScale scale = scale_of<kBits>(largest_of_block(largest, std::uint32_t{0}));
  if (threadIdx.x == 0) *step = scale.step;
#pragma unroll
  for (int p = 0; p < kHeldPacks; ++p) {
    const std::int64_t i = first + p * stride;
    if (i < size) store_integers<kBits, kPacked>(out, i, size, rounded<kBits>(held[p], scale));
  }
  for (std::int64_t i = first + kHeldPacks * stride; i < size; i += stride) {
    store_integers<kBits, kPacked>(out, i, size, rounded<kBits>(values_at(i), scale));
  }
}

template <class T, int kBits, bool kPacked>
__global__ void __launch_bounds__(kMostThreads, 1)
    quantize(const T* in, std::int64_t size, Quantization how, std::int8_t* out, float* steps) {
  const T* const x = in + blockIdx.x * size;
  const std::int64_t place = place_of(blockIdx.x, gridDim.x, how);
  quantize_group<kBits, kPacked>([=](std::int64_t i) { return load_floats<kPacked>(x, i, size); },
                                 size, out + packed_size(place * size, kBits), steps + place);
}

template <int kBits, bool kPacked>
__global__ void __launch_bounds__(kMostThreads, 1)
    sum_quantized(const std::int8_t* in, const float* steps, int parts, std::int64_t size,
                  std::int8_t* out, float* out_steps) {
  const std::int64_t group = blockIdx.x;
  const std::int64_t groups = gridDim.x;
  const auto sum_at = [=](std::int64_t i) {
    Floats sum{};
#pragma unroll 2
    for (int part = 0; part < parts; ++part) {
      const std::int64_t index = part * groups + group;
      const Integers integers =
          load_integers<kBits, kPacked>(in + packed_size(index * size, kBits), i, size);
      const float step = steps[index];
#pragma unroll
      for (int k = 0; k < kQuantizedWidth; ++k) {
        sum.values[k] += static_cast<float>(integers.values[k]) * step;
      }
    }
    return sum;
  };
  quantize_group<kBits, kPacked>(sum_at, size, out + packed_size(group * size, kBits),
                                 out_steps + group);
}

/// Threads for a block that takes a whole group.
int threads_for(std::int64_t size) {
  constexpr std::int64_t kPerWarp = std::int64_t{kWarp} * kQuantizedWidth * kHeldPacks;
  const std::int64_t warps = (size + kPerWarp - 1) / kPerWarp;
  return static_cast<int>(std::clamp<std::int64_t>(warps * kWarp, kWarp, kMostThreads));
}

}  // namespace

void CudaDevice::compute(const Quantize& op) {
  const std::int64_t groups = op.steps.numel;
  const std::int64_t size = group_size(op.in.numel, op.steps);
  assert(size * groups == op.in.numel && packed_size(op.in.numel, op.how.bits) == op.out.numel);
  assert(groups % (op.how.nodes * op.how.devices) == 0 && (op.how.bits == 8 || size % 2 == 0));
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const in = elements<const T>(op.in);
    const bool packed = is_packed(size, op.how.bits, op.out) && is_aligned<kQuantizedWidth>(in);
    with_form(op.how.bits, packed, [&]<int kBits, bool kPacked>() {
      launch(stream(), {groups, threads_for(size)}, quantize<T, kBits, kPacked>, in, size, op.how,
             elements<std::int8_t>(op.out), elements<float>(op.steps));
    });
  });
}

void CudaDevice::compute(const SumQuantized& op) {
  const std::int64_t groups = op.out_steps.numel;
  const std::int64_t size = group_size(op.out.numel * 8 / op.bits, op.out_steps);
  assert(op.steps.numel == op.parts * groups && op.in.numel == op.parts * op.out.numel);
  const bool packed = is_packed(size, op.bits, op.in) && is_packed(size, op.bits, op.out);
  with_form(op.bits, packed, [&]<int kBits, bool kPacked>() {
    launch(stream(), {groups, threads_for(size)}, sum_quantized<kBits, kPacked>,
           elements<const std::int8_t>(op.in), elements<const float>(op.steps), op.parts, size,
           elements<std::int8_t>(op.out), elements<float>(op.out_steps));
  });
}

}  // namespace dstune::cuda
