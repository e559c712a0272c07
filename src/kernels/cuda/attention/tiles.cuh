// Products of 16 x 16 tiles by one warp: on tensor cores for fp16, by plain FMA for fp32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include <mma.h>

#include "core/device/operations/attention.hpp"
#include "kernels/cuda/kernels/elements.cuh"

namespace dstune::cuda {

constexpr int kTile = 16;
/// The shared memory that a block has on every GPU without asking for more.
constexpr std::size_t kSharedBytes = std::size_t{48} << 10U;

/// Sums of a tile, spread over the warp in an order that nobody knows but load and store.
template <class T>
struct TileSums {
  nvcuda::wmma::fragment<nvcuda::wmma::accumulator, kTile, kTile, kTile, float> fragment;

  __device__ void clear() { nvcuda::wmma::fill_fragment(fragment, 0.0F); }
  __device__ void load(const float* from, int stride) {
    nvcuda::wmma::load_matrix_sync(fragment, from, static_cast<unsigned>(stride),
                                   nvcuda::wmma::mem_row_major);
  }
  __device__ void store(float* to, int stride) const {
    nvcuda::wmma::store_matrix_sync(to, fragment, static_cast<unsigned>(stride),
                                    nvcuda::wmma::mem_row_major);
  }
};

/// The left tile of products, (16, 16), from shared memory.
template <class T>
struct TileLeft {
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, kTile, kTile, kTile, T, nvcuda::wmma::row_major>
      fragment;

  __device__ void load(const T* from, int stride) {
    nvcuda::wmma::load_matrix_sync(fragment, from, static_cast<unsigned>(stride));
  }
};

/// sums += left B, for B (16, 16) in shared memory.
/// @tparam kTransposed  B's columns lie at b, one after the other
template <bool kTransposed, class T>
__device__ inline void multiply(TileSums<T>& sums, const TileLeft<T>& left, const T* b,
                                int stride) {
  using Layout = std::conditional_t<kTransposed, nvcuda::wmma::col_major, nvcuda::wmma::row_major>;
  nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, kTile, kTile, kTile, T, Layout> right;
  nvcuda::wmma::load_matrix_sync(right, b, static_cast<unsigned>(stride));
  nvcuda::wmma::mma_sync(sums.fragment, left.fragment, right, sums.fragment);
}

/// fp32: lane l has row l / 2, of its halves l % 2.
template <>
struct TileSums<float> {
  static constexpr int kColumns = kTile / 2;
  float values[kColumns];

  __device__ static int row() { return static_cast<int>(threadIdx.x % 32) / 2; }
  __device__ static int column() { return static_cast<int>(threadIdx.x % 2) * kColumns; }

  __device__ void clear() {
#pragma unroll
    for (float& value : values) value = 0;
  }
  __device__ void load(const float* from, int stride) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) values[j] = from[row() * stride + column() + j];
  }
  __device__ void store(float* to, int stride) const {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) to[row() * stride + column() + j] = values[j];
  }
};

template <>
struct TileLeft<float> {
  const float* row;

  __device__ void load(const float* from, int stride) {
    row = from + TileSums<float>::row() * stride;
  }
};

template <bool kTransposed>
__device__ inline void multiply(TileSums<float>& sums, const TileLeft<float>& left, const float* b,
                                int stride) {
#pragma unroll
  for (int l = 0; l < kTile; ++l) {
#pragma unroll
    for (int j = 0; j < TileSums<float>::kColumns; ++j) {
      const int column = TileSums<float>::column() + j;
      sums.values[j] +=
          left.row[l] * (kTransposed ? b[column * stride + l] : b[l * stride + column]);
    }
  }
}

/// Elements between the rows of a tile in shared memory of `columns` columns: 16 bytes more, so
/// that the threads of a warp meet different banks.
template <class T>
constexpr int tile_stride(int columns) {
  return columns + static_cast<int>(16 / sizeof(T));
}

/// Where the rows of a tile come from.
template <class T>
struct TileSource {
  const T* rows;        ///< the first
  std::int64_t stride;  ///< elements between two
  std::int64_t count;   ///< that exist; the tile's others are 0
  int columns;          ///< likewise
  bool packed;          ///< all rows can be read in packs
};

/// Fills rows x columns of `tile`, whose stride is `stride`. All threads of the block must call it.
/// @param columns  a multiple of 16
template <class T>
__device__ inline void load_tile(T* tile, int stride, int rows, int columns,
                                 const TileSource<T>& from) {
  constexpr int kWidth = kPackWidth<T>;
  const int packs = columns / kWidth;
  for (int p = static_cast<int>(threadIdx.x); p < rows * packs; p += static_cast<int>(blockDim.x)) {
    const int row = p / packs;
    const int column = p % packs * kWidth;
    const T* const source = from.rows + row * from.stride + column;
    Pack<T, kWidth> pack{};
    if (row < from.count && from.packed && column < from.columns) {
      pack = load_pack<kWidth>(source);
    } else if (row < from.count) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) {
        if (column + k < from.columns) pack.values[k] = source[k];
      }
    }
    store_pack(tile + row * stride + column, pack);
  }
}

/// to[0 .. 8) = values * factor, of which `count` exist.
/// @param packed  `to` is aligned for packs, which exist or do not
template <class T>
__device__ inline void store_half_row(const float* values, float factor, T* to, int count,
                                      bool packed) {
  constexpr int kWidth = kPackWidth<T>;
#pragma unroll
  for (int first = 0; first < kTile / 2; first += kWidth) {
    Pack<T, kWidth> pack;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) pack.values[k] = from_float<T>(values[first + k] * factor);
    if (packed && first < count) {
      store_pack(to + first, pack);
    } else {
      for (int k = 0; k < kWidth; ++k) {
        if (first + k < count) to[first + k] = pack.values[k];
      }
    }
  }
}

/// True if the rows of all these heads can be read and written in packs.
template <class T>
bool have_packed_rows(std::initializer_list<Heads> all, const AttentionShape& shape) {
  constexpr int kWidth = kPackWidth<T>;
  return shape.head_size % kWidth == 0 && std::all_of(all.begin(), all.end(), [](const Heads& one) {
           return has_packed_rows<kWidth, T>(one.matrix) && one.stride % kWidth == 0;
         });
}

/// Warps of a block, one per 16 rows: no more than a short sequence has work for.
inline int warps_for(std::int64_t sequence, int most) {
  return static_cast<int>(std::min<std::int64_t>((sequence + kTile - 1) / kTile, most));
}

}  // namespace dstune::cuda
