// Packs of eight values, as floats and as quantised integers.
#pragma once

#include <cassert>
#include <cstdint>

#include "core/device/operations/quantize.hpp"
#include "kernels/cuda/kernels/elements.cuh"

namespace dstune::cuda {

constexpr int kQuantizedWidth = 8;

struct Floats {
  float values[kQuantizedWidth];
};

struct Integers {
  int values[kQuantizedWidth];
};

/// Elements [i, i + 8) of the `size` at `x`; 0 behind the end.
/// @tparam kPacked  `x` is aligned for packs, and `size` is whole packs
template <bool kPacked, class T>
__device__ Floats load_floats(const T* x, std::int64_t i, std::int64_t size) {
  Floats floats;
  if constexpr (kPacked) {
    const auto pack = load_pack<kQuantizedWidth>(x + i);
#pragma unroll
    for (int k = 0; k < kQuantizedWidth; ++k) floats.values[k] = to_float(pack.values[k]);
  } else {
#pragma unroll
    for (int k = 0; k < kQuantizedWidth; ++k) {
      floats.values[k] = i + k < size ? to_float(x[i + k]) : 0.0F;
    }
  }
  return floats;
}

/// Stores integers times step as floats.
template <bool kPacked, class T>
__device__ void store_floats(T* x, std::int64_t i, std::int64_t size, const Integers& integers,
                             float step) {
  Pack<T, kQuantizedWidth> pack;
#pragma unroll
  for (int k = 0; k < kQuantizedWidth; ++k) {
    pack.values[k] = from_float<T>(static_cast<float>(integers.values[k]) * step);
  }
  if constexpr (kPacked) {
    store_pack(x + i, pack);
  } else {
#pragma unroll
    for (int k = 0; k < kQuantizedWidth; ++k) {
      if (i + k < size) x[i + k] = pack.values[k];
    }
  }
}

/// Bytes of eight quantised values.
template <int kBits>
constexpr int kQuantizedBytes = static_cast<int>(packed_size(kQuantizedWidth, kBits));

template <int kBits>
__device__ Integers unpacked(const Pack<std::int8_t, kQuantizedBytes<kBits>>& bytes) {
  Integers integers;
#pragma unroll
  for (int k = 0; k < kQuantizedWidth; ++k) {
    if constexpr (kBits == 8) {
      integers.values[k] = bytes.values[k];
    } else {
      const int byte = bytes.values[k / 2];
      integers.values[k] = k % 2 == 0 ? static_cast<std::int8_t>(byte << 4) >> 4 : byte >> 4;
    }
  }
  return integers;
}

template <int kBits>
__device__ Pack<std::int8_t, kQuantizedBytes<kBits>> packed(const Integers& integers) {
  Pack<std::int8_t, kQuantizedBytes<kBits>> bytes;
#pragma unroll
  for (int b = 0; b < kQuantizedBytes<kBits>; ++b) {
    if constexpr (kBits == 8) {
      bytes.values[b] = static_cast<std::int8_t>(integers.values[b]);
    } else {
      bytes.values[b] = static_cast<std::int8_t>((integers.values[2 * b] & 0xf) |
                                                 (integers.values[2 * b + 1] << 4));
    }
  }
  return bytes;
}

/// Values [i, i + 8) of the `size` quantised ones at `in`; 0 behind the end.
template <int kBits, bool kPacked>
__device__ Integers load_integers(const std::int8_t* in, std::int64_t i, std::int64_t size) {
  constexpr int kBytes = kQuantizedBytes<kBits>;
  const std::int64_t begin = packed_size(i, kBits);
  if constexpr (kPacked) {
    return unpacked<kBits>(load_pack<kBytes>(in + begin));
  } else {
    Pack<std::int8_t, kBytes> bytes;
#pragma unroll
    for (int b = 0; b < kBytes; ++b) {
      bytes.values[b] = begin + b < packed_size(size, kBits) ? in[begin + b] : std::int8_t{0};
    }
    return unpacked<kBits>(bytes);
  }
}

template <int kBits, bool kPacked>
__device__ void store_integers(std::int8_t* out, std::int64_t i, std::int64_t size,
                               const Integers& integers) {
  constexpr int kBytes = kQuantizedBytes<kBits>;
  const std::int64_t begin = packed_size(i, kBits);
  const auto bytes = packed<kBits>(integers);
  if constexpr (kPacked) {
    store_pack(out + begin, bytes);
  } else {
#pragma unroll
    for (int b = 0; b < kBytes; ++b) {
      if (begin + b < packed_size(size, kBits)) out[begin + b] = bytes.values[b];
    }
  }
}

/// f.operator()<kBits, kPacked>()
template <class F>
void with_form(int bits, bool packed, const F& f) {
  assert(bits == 8 || bits == 4);
  if (bits == 8)
    return packed ? f.template operator()<8, true>() : f.template operator()<8, false>();
  return packed ? f.template operator()<4, true>() : f.template operator()<4, false>();
}

/// True if every group of `size` elements is whole packs.
inline bool is_packed(std::int64_t size, int bits, Tensor quantized) {
  const auto pack_bytes = static_cast<std::uintptr_t>(packed_size(kQuantizedWidth, bits));
  return size % kQuantizedWidth == 0 &&
         reinterpret_cast<std::uintptr_t>(quantized.data) % pack_bytes == 0;
}

inline std::int64_t group_size(std::int64_t numel, Tensor steps) {
  return steps.numel == 0 ? 0 : numel / steps.numel;
}

}  // namespace dstune::cuda
