// Instructions of a warp on the host: the last lane to come does the work of all.
#pragma once
#pragma GCC system_header

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace cuda_on_host {

/// What each of 32 lanes brought.
using LanesOperands = std::array<void*, 32>;

/// Meets all lanes of the warp; work(operands) is done once, before any of them goes on.
void warp_together(void* own, void (*work)(const LanesOperands&));

/// Copies for this thread when it waits for its copies. `size` 0: fills with zeros.
void copy_later(void* to, const void* from, unsigned bytes, bool exists);
void wait_for_copies();

using Half16 = std::uint16_t;

struct MatricesRead {
  std::uint32_t* values;
  const void* row;
};

template <bool transposed>
void read_matrices(const LanesOperands& lanes) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned matrix = 0; matrix < 4; ++matrix) {
      Half16 pair[2];
      for (unsigned k = 0; k < 2; ++k) {
        const unsigned row = transposed ? 2 * (lane % 4) + k : lane / 4;
        const unsigned column = transposed ? lane / 4 : 2 * (lane % 4) + k;
        const void* const from = static_cast<MatricesRead*>(lanes[matrix * 8 + row])->row;
        pair[k] = static_cast<const Half16*>(from)[column];
      }
      std::memcpy(static_cast<MatricesRead*>(lanes[lane])->values + matrix, pair, sizeof pair);
    }
  }
}

struct Product {
  float* sums;
  const std::uint32_t* a;
  std::uint32_t b[2];
};

template <class T>
float element(std::uint32_t pair, unsigned which) {
  T values[2];
  std::memcpy(static_cast<void*>(values), &pair, sizeof values);
  return values[which];
}

template <class T>
void multiply(const LanesOperands& lanes) {
  float a[16][16], b[16][8];
  for (unsigned lane = 0; lane < 32; ++lane) {
    const auto& product = *static_cast<Product*>(lanes[lane]);
    const unsigned row = lane / 4;
    const unsigned column = 2 * (lane % 4);
    for (unsigned k = 0; k < 2; ++k) {
      for (unsigned i = 0; i < 4; ++i)
        a[row + i % 2 * 8][column + i / 2 * 8 + k] = element<T>(product.a[i], k);
      for (unsigned i = 0; i < 2; ++i) b[column + i * 8 + k][row] = element<T>(product.b[i], k);
    }
  }
  float c[16][8] = {};
  for (unsigned row = 0; row < 16; ++row) {
    for (unsigned inner = 0; inner < 16; ++inner) {
      for (unsigned column = 0; column < 8; ++column)
        c[row][column] += a[row][inner] * b[inner][column];
    }
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    float* const sums = static_cast<Product*>(lanes[lane])->sums;
    for (unsigned i = 0; i < 4; ++i) sums[i] += c[lane / 4 + i / 2 * 8][2 * (lane % 4) + i % 2];
  }
}

}  // namespace cuda_on_host

namespace dstune::cuda {

inline void load_matrices(std::uint32_t (&values)[4], const void* row) {
  cuda_on_host::MatricesRead read{values, row};
  cuda_on_host::warp_together(&read, cuda_on_host::read_matrices<false>);
}

inline void load_transposed(std::uint32_t (&values)[4], const void* row) {
  cuda_on_host::MatricesRead read{values, row};
  cuda_on_host::warp_together(&read, cuda_on_host::read_matrices<true>);
}

template <class T>
void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                  std::uint32_t b1) {
  cuda_on_host::Product product{sums, a, {b0, b1}};
  cuda_on_host::warp_together(&product, cuda_on_host::multiply<T>);
}

template <int kBytes>
void copy_async(void* to, const void* from, bool exists) {
  cuda_on_host::copy_later(to, from, kBytes, exists);
}

inline void wait_for_copies() { cuda_on_host::wait_for_copies(); }

inline float exp2_fast(float x) { return std::exp2(x); }

}  // namespace dstune::cuda
