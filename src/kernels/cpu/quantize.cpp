#include "core/device/operations/quantize.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

/// Values of one block, as integers that are not packed yet.
using Integers = std::array<std::int8_t, kBlockElements>;

/// Magnitudes as bits are in the order of the magnitudes, NaN above infinity.
[[gnu::noinline]] float largest_magnitude(const float* x, std::int64_t count) {
  std::uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffU);
  }
  return std::bit_cast<float>(largest);
}

/// What one group is multiplied with.
struct GroupScale {
  float per_unit = 1;  ///< 1 / step
  float step = 1;
  bool finite = true;
};

GroupScale scale_of(float largest, int bits) {
  if (!std::isfinite(largest)) return {0, std::numeric_limits<float>::quiet_NaN(), false};
  if (largest == 0) return {};
  const float per_unit = static_cast<float>(1 << (bits - 1)) / largest;
  return std::isfinite(per_unit) ? GroupScale{per_unit, 1 / per_unit, true} : GroupScale{};
}

/// x times `per_unit`, rounded to nearest even, between the smallest and largest value of `bits`.
/// x must be finite.
[[gnu::noinline]] void round_block(const float* x, std::int64_t count, float per_unit, int bits,
                                   std::int8_t* out) {
  constexpr float kRound = 0x1.8p23F;  // adding it leaves no bits below one
  const auto lowest = static_cast<float>(-(1 << (bits - 1)));
  const auto highest = static_cast<float>((1 << (bits - 1)) - 1);
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = std::min(std::max(x[i] * per_unit, lowest), highest);
    const auto rounded = std::bit_cast<std::uint32_t>(value + kRound);
    out[i] = static_cast<std::int8_t>(rounded & 0xffU);
  }
}

[[gnu::noinline]] void pack(const std::int8_t* in, std::int64_t count, std::int8_t* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < count / 2; ++i) {
    out[i] = static_cast<std::int8_t>((in[2 * i] & 0xf) | (in[2 * i + 1] << 4));
  }
}

[[gnu::noinline]] void unpack(const std::int8_t* in, std::int64_t count, std::int8_t* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < count / 2; ++i) {
    out[2 * i] = static_cast<std::int8_t>(static_cast<std::int8_t>(in[i] << 4) >> 4);
    out[2 * i + 1] = static_cast<std::int8_t>(in[i] >> 4);
  }
}

/// Quantises one group of floats; returns its step.
float quantize_group(const float* x, std::int64_t count, int bits, std::int8_t* out) {
  const GroupScale scale = scale_of(largest_magnitude(x, count), bits);
  if (!scale.finite) {
    std::fill(out, out + packed_size(count, bits), std::int8_t{0});
    return scale.step;
  }
  if (bits == 8) {
    round_block(x, count, scale.per_unit, bits, out);
    return scale.step;
  }
  Integers integers;  // NOLINT(*-member-init): written before it is read
  for (std::int64_t begin = 0; begin < count; begin += kBlockElements) {
    const std::int64_t block = std::min(kBlockElements, count - begin);
    round_block(x + begin, block, scale.per_unit, bits, integers.data());
    pack(integers.data(), block, out + begin / 2);
  }
  return scale.step;
}

/// The quantised values [begin, begin + count) of `in`, not packed; begin is even.
const std::int8_t* integers_of(const std::int8_t* in, int bits, std::int64_t begin,
                               std::int64_t count, Integers& buffer) {
  if (bits == 8) return in + begin;
  unpack(in + begin / 2, count, buffer.data());
  return buffer.data();
}

[[gnu::noinline]] void multiply(const std::int8_t* in, std::int64_t count, float step, float* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(in[i]) * step;
}

[[gnu::noinline]] void multiply_add(const std::int8_t* in, std::int64_t count, float step,
                                    float* sum) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] += static_cast<float>(in[i]) * step;
}

/// Adds the dequantised group to `sum`.
void add_group(const std::int8_t* in, int bits, std::int64_t count, float step, float* sum) {
  Integers buffer;  // NOLINT(*-member-init): written before it is read
  for (std::int64_t begin = 0; begin < count; begin += kBlockElements) {
    const std::int64_t block = std::min(kBlockElements, count - begin);
    multiply_add(integers_of(in, bits, begin, block, buffer), block, step, sum + begin);
  }
}

template <class T>
void dequantize_group(const std::int8_t* in, int bits, std::int64_t count, float step, T* out) {
  Integers buffer;                           // NOLINT(*-member-init): written before it is read
  std::array<float, kBlockElements> values;  // NOLINT(*-member-init): likewise
  for (std::int64_t begin = 0; begin < count; begin += kBlockElements) {
    const std::int64_t block = std::min(kBlockElements, count - begin);
    const std::int8_t* const integers = integers_of(in, bits, begin, block, buffer);
    if constexpr (std::is_same_v<T, float>) {
      multiply(integers, block, step, out + begin);
    } else {
      multiply(integers, block, step, values.data());
      convert(values.data(), out + begin, block);
    }
  }
}

}  // namespace

void CpuDevice::compute(const Quantize& op) {
  const Tensor in = op.in;
  const Quantization how = op.how;
  const std::int64_t groups = op.steps.numel;
  const std::int64_t size = groups == 0 ? 0 : in.numel / groups;
  assert(size * groups == in.numel && packed_size(in.numel, how.bits) == op.out.numel);
  assert(groups % (how.nodes * how.devices) == 0 && (how.bits == 8 || size % 2 == 0));
  auto* const step = elements<float>(op.steps);
  auto* const packed = elements<std::int8_t>(op.out);
  float* const buffer = in.dtype == DType::fp32 ? nullptr : scratch(size);
  with_type(in.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, groups, size, [=](std::int64_t group) {
      const T* const x = elements<T>(in) + group * size;
      const float* values = buffer;
      if constexpr (std::is_same_v<T, float>) {
        values = x;
      } else {
        convert(x, buffer, size);
      }
      const std::int64_t place = place_of(group, groups, how);
      step[place] =
          quantize_group(values, size, how.bits, packed + packed_size(place * size, how.bits));
    });
  });
}

void CpuDevice::compute(const Dequantize& op) {
  const Tensor out = op.out;
  const int bits = op.bits;
  const std::int64_t groups = op.steps.numel;
  const std::int64_t size = groups == 0 ? 0 : out.numel / groups;
  assert(size * groups == out.numel && packed_size(out.numel, bits) == op.in.numel);
  const auto* const step = elements<float>(op.steps);
  const auto* const packed = elements<std::int8_t>(op.in);
  with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    for_rows(*this, groups, size, [=](std::int64_t group) {
      dequantize_group(packed + packed_size(group * size, bits), bits, size, step[group],
                       elements<T>(out) + group * size);
    });
  });
}

void CpuDevice::compute(const SumQuantized& op) {
  const int bits = op.bits;
  const int parts = op.parts;
  const std::int64_t groups = op.out_steps.numel;
  const std::int64_t size = groups == 0 ? 0 : op.out.numel * 8 / bits / groups;
  assert(op.steps.numel == parts * groups && op.in.numel == parts * op.out.numel);
  const auto* const step = elements<float>(op.steps);
  const auto* const packed = elements<std::int8_t>(op.in);
  auto* const summed = elements<std::int8_t>(op.out);
  auto* const out_step = elements<float>(op.out_steps);
  float* const sum = scratch(size);
  for_rows(*this, groups, size * parts, [=](std::int64_t group) {
    std::fill(sum, sum + size, 0.0F);
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t index = part * groups + group;
      add_group(packed + packed_size(index * size, bits), bits, size, step[index], sum);
    }
    out_step[group] = quantize_group(sum, size, bits, summed + packed_size(group * size, bits));
  });
}

}  // namespace dstune::cpu
