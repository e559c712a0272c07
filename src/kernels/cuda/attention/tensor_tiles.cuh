// Tiles of 16-bit elements in shared memory as a warp's products take them. Sums of products stay
// in registers: lane l has rows l / 4 and l / 4 + 8 of each 16, columns 2 (l % 4) and the next of
// each 8 (multiply_add()), and what it makes of them is the left side of the next product as it is.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/cuda/attention/tiles.cuh"
#include "kernels/cuda/kernels/elements.cuh"
#include "warp_instructions.cuh"

namespace dstune::cuda::tensor {

constexpr float kLog2E = 1.44269504F;
constexpr unsigned kAll = 0xffffffffU;
/// Columns of a product of sums.
constexpr int kColumns = 8;

/// The left side of products: (16, 16).
using Left = std::uint32_t[4];
/// Sums of (16, 8).
using Sums = float[4];

__device__ inline int lane() { return static_cast<int>(threadIdx.x % 32); }
/// The first of the two rows, and of the two columns, of this lane's sums in a tile.
__device__ inline int own_row() { return lane() / 4; }
__device__ inline int own_column() { return lane() % 4 * 2; }

template <class T>
__device__ inline std::uint32_t rounded_pair(float first, float second) {
  std::uint32_t bits;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
    std::memcpy(&bits, &pair, sizeof bits);
  } else {
    const __half2 pair = __floats2half2_rn(first, second);
    std::memcpy(&bits, &pair, sizeof bits);
  }
  return bits;
}

/// The sums of 16 columns as the left side of a product.
template <class T>
__device__ inline void round_sums(Left& left, const Sums& first, const Sums& second) {
  left[0] = rounded_pair<T>(first[0], first[1]);
  left[1] = rounded_pair<T>(first[2], first[3]);
  left[2] = rounded_pair<T>(second[0], second[1]);
  left[3] = rounded_pair<T>(second[2], second[3]);
}

/// Rows of kSize elements in shared memory. 16 bytes between two, so that eight of them lie in
/// different banks.
template <class T, int kSize>
struct TensorTile {
  static constexpr int kStride = kSize + 8;

  T* first;

  __device__ TensorTile rows_from(int row) const { return {first + row * kStride}; }

  /// Rows 0 .. 15, columns from `column` on.
  __device__ void load_left(Left& left, int column) const {
    load_matrices(left, first + lane() % 16 * kStride + column + lane() / 16 * 8);
  }
  /// Rows `row` .. row + 15 transposed as the right side of two products: b of the first eight rows
  /// in right[0], right[1], of the others in right[2], right[3].
  __device__ void load_right_transposed(Left& right, int row, int column) const {
    const int own = row + lane() / 16 * 8 + lane() % 8;
    load_matrices(right, first + own * kStride + column + lane() / 8 % 2 * 8);
  }
  /// Rows `row` .. row + 15 as the right side of two products: b of the first eight columns in
  /// right[0], right[1], of the others in right[2], right[3].
  __device__ void load_right(Left& right, int row, int column) const {
    load_transposed(right, first + (row + lane() % 16) * kStride + column + lane() / 16 * 8);
  }
};

/// Starts to fill `rows` rows. All threads of the block must call it.
template <class T, int kSize>
__device__ inline void copy_tile(const TensorTile<T, kSize>& tile, int rows,
                                 const TileSource<T>& from) {
  constexpr int kWidth = kPackWidth<T>;
  constexpr int kPacks = kSize / kWidth;
  if (!from.packed) {
    return load_tile(tile.first, tile.kStride, rows, kSize, from);
  }
  const int count = static_cast<int>(min(from.count, std::int64_t{rows}));
  const int stride = static_cast<int>(from.stride);  // a tile lies within 2^31 elements
#pragma unroll 4
  for (int p = static_cast<int>(threadIdx.x); p < rows * kPacks;
       p += static_cast<int>(blockDim.x)) {
    const int row = p / kPacks;
    const int column = p % kPacks * kWidth;
    copy_async<16>(tile.first + row * tile.kStride + column, from.rows + (row * stride + column),
                   row < count && column < from.columns);
  }
}

/// A warp's kAtoms times 16 rows of a tile as the left side of products, which a warp keeps in
/// registers where they have room.
template <class T, int kSize, int kAtoms, bool kKept>
class LeftRows {
 public:
  using Tile = TensorTile<T, kSize>;

  /// Takes the tile, when it is filled.
  __device__ void take(const Tile& tile) {
    tile_ = tile;
    if constexpr (kKept) {
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
#pragma unroll
        for (int a = 0; a < kAtoms; ++a)
          tile.rows_from(a * kTile).load_left(kept_[c][a], c * kTile);
      }
    }
  }

  /// sums[a][n] += rows other^T of rows a * 16 and on, and other's rows n * 8 and on.
  template <int kOthers>
  __device__ void multiply(Sums (&sums)[kAtoms][kOthers / kColumns], const Tile& other) const {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      Left left[kAtoms];
#pragma unroll
      for (int a = 0; a < kAtoms; ++a) load(left[a], c, a);
#pragma unroll
      for (int t = 0; t < kOthers / kTile; ++t) {
        Left right;
        other.load_right_transposed(right, t * kTile, c * kTile);
#pragma unroll
        for (int a = 0; a < kAtoms; ++a) {
          multiply_add<T>(sums[a][2 * t], left[a], right[0], right[1]);
          multiply_add<T>(sums[a][2 * t + 1], left[a], right[2], right[3]);
        }
      }
    }
  }

 private:
  static constexpr int kChunks = kSize / kTile;

  __device__ void load(Left& left, int chunk, int atom) const {
    if constexpr (kKept) {
#pragma unroll
      for (int i = 0; i < 4; ++i) left[i] = kept_[chunk][atom][i];
    } else {
      tile_.rows_from(atom * kTile).load_left(left, chunk * kTile);
    }
  }

  Tile tile_{};
  Left kept_[kKept ? kChunks : 1][kAtoms];
};

/// sums[a][n] += left[a] other, of the 16 rows of `other` from `row` on.
template <class T, int kSize, int kAtoms, int kCount>
__device__ inline void multiply_rows(Sums (&sums)[kAtoms][kCount], const Left (&left)[kAtoms],
                                     const TensorTile<T, kSize>& other, int row) {
#pragma unroll
  for (int c = 0; c < kSize / kTile; ++c) {
    Left right;
    other.load_right(right, row, c * kTile);
#pragma unroll
    for (int a = 0; a < kAtoms; ++a) {
      multiply_add<T>(sums[a][2 * c], left[a], right[0], right[1]);
      multiply_add<T>(sums[a][2 * c + 1], left[a], right[2], right[3]);
    }
  }
}

template <int kAtoms, int kCount>
__device__ inline void clear(Sums (&sums)[kAtoms][kCount]) {
#pragma unroll
  for (auto& atom : sums) {
#pragma unroll
    for (Sums& tile : atom) {
#pragma unroll
      for (float& value : tile) value = 0;
    }
  }
}

/// Writes two values, rounded, to row[column] and the next, where a row has so many columns.
/// @param packed  it has both or none, and they are aligned
template <class T>
__device__ inline void store_pair(T* row, int column, int columns, bool packed, float first,
                                  float second) {
  if (packed && column < columns) {
    store_pack(row + column, Pack<T, 2>{{from_float<T>(first), from_float<T>(second)}});
  } else {
    if (column < columns) row[column] = from_float<T>(first);
    if (column + 1 < columns) row[column + 1] = from_float<T>(second);
  }
}

}  // namespace dstune::cuda::tensor
