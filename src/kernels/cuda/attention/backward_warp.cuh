// What a warp does in attention's backward pass with its 16 keys or queries.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/operands.cuh"
#include "kernels/cuda/attention/tiles.cuh"

namespace dstune::cuda::own_backward {

constexpr float kLog2E = 1.44269504F;

/// Sizes of tiles: what fits into the shared memory that every GPU has.
template <class T, int kSize>
struct BackwardTiles {
  static constexpr bool kWide = sizeof(T) == 4;
  static constexpr int kMostWarps = 4 / (kWide ? 2 : 1) / (kSize > 64 ? 2 : 1);
  static constexpr int kOthers = kWide && kSize > 64 ? 16 : 32;
  static constexpr int kStride = tile_stride<T>(kSize);
  static constexpr int kScoreStride = kOthers + 4;

  /// The shared memory of a block.
  static constexpr std::size_t bytes(int warps) {
    const auto rows = static_cast<std::size_t>(kTile * warps);
    return 2 * (rows + kOthers) * kStride * sizeof(T) +
           2 * (rows * kScoreStride + kOthers) * sizeof(float);
  }
};

/// A warp's 16 own rows, keys or queries. Lane l works on row l % 16 of the scores, half l / 16 of
/// its columns.
template <class T, int kSize, bool kByKeys>
class BackwardWarp {
 public:
  using Tiles = BackwardTiles<T, kSize>;

  __device__ BackwardWarp(const HeadShape& shape, float* scores, float* d_probs,
                          std::int64_t first_row)
      : scores_(scores),
        d_probs_(d_probs),
        chunks_((shape.size + kTile - 1) / kTile),
        row_(first_row + row()) {
#pragma unroll
    for (TileSums<T>& sums : d_first_) sums.clear();
#pragma unroll
    for (TileSums<T>& sums : d_second_) sums.clear();
  }

  __device__ static int row() { return static_cast<int>(threadIdx.x) % kTile; }
  __device__ static int half() { return static_cast<int>(threadIdx.x) % 32 / kTile; }

  /// to = own other^T
  __device__ void multiply_rows(const T* own, const T* other, float* to) {
    TileSums<T> sums[kOtherTiles];
#pragma unroll
    for (TileSums<T>& tile : sums) tile.clear();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c >= chunks_) continue;
      TileLeft<T> left;
      left.load(own + c * kTile, Tiles::kStride);
#pragma unroll
      for (int t = 0; t < kOtherTiles; ++t) {
        multiply<true>(sums[t], left, other + t * kTile * Tiles::kStride + c * kTile,
                       Tiles::kStride);
      }
    }
#pragma unroll
    for (int t = 0; t < kOtherTiles; ++t) sums[t].store(to + t * kTile, Tiles::kScoreStride);
  }

  /// Scores become the probabilities that V was multiplied with, and d_probs the gradients of the
  /// scores.
  /// @param lse, d_dot_out  of the queries that are the columns; of the head where they are the
  /// rows
  __device__ void differentiate(const HeadShape& shape, const Sight<>& sight,
                                const ScoreDropout& dropout, std::int64_t first_other,
                                const float* lse, const float* d_dot_out) {
    const int from = row() * Tiles::kScoreStride + half() * kOwn;
    const bool exists = row_ < shape.sequence;
    const float own_lse = !kByKeys && exists ? lse[row_] : 0;
    const float own_dot = !kByKeys && exists ? d_dot_out[row_] : 0;
    const std::int64_t most = Tiles::kOthers;
    const auto visible_from = static_cast<int>(min(sight.first(row_) - first_other, most));
    const auto visible_to = exists ? static_cast<int>(min(sight.end(row_) - first_other, most)) : 0;
    float p[kOwn];
    float d[kOwn];
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const int column = half() * kOwn + j;
      const std::int64_t other = first_other + column;
      const std::int64_t query = kByKeys ? other : row_;
      const std::int64_t key = kByKeys ? row_ : other;
      const bool visible = column >= visible_from && column < visible_to;
      const float log_sum = kByKeys ? lse[column] : own_lse;
      const float exponent = (scores_[from + j] * shape.scale - log_sum) * kLog2E;
      const float probability = visible ? exp2f(exponent) : 0.0F;
      const float multiplier = dropout.multiplier(query, key);
      const float mean = kByKeys ? d_dot_out[column] : own_dot;
      p[j] = probability * multiplier;
      d[j] = visible ? probability * (d_probs_[from + j] * multiplier - mean) * shape.scale : 0.0F;
    }
    __syncwarp();
    write(p, scores_);
    write(d, d_probs_);
    __syncwarp();
  }

  /// The sums of d_k and d_v, or of d_q.
  __device__ void accumulate(const T* first, const T* second) {
    multiply_others(d_probs_, first, d_first_);
    if constexpr (kByKeys) multiply_others(scores_, second, d_second_);
    __syncwarp();
  }

  /// @param d_first, d_second  the head's rows
  __device__ void finish(const BackwardOperands<T>& op, T* d_first, T* d_second) {
    store(op, d_first_, d_first, op.d_k_or_q.stride);
    if constexpr (kByKeys) store(op, d_second_, d_second, op.d_v.stride);
  }

 private:
  static constexpr int kChunks = kSize / kTile;
  static constexpr int kOtherTiles = Tiles::kOthers / kTile;
  static constexpr int kOwn = Tiles::kOthers / 2;
  static constexpr int kRounded = Tiles::kScoreStride * static_cast<int>(sizeof(float) / sizeof(T));

  // Rounded, over what it was made from.
  __device__ static void write(const float (&values)[kOwn], float* scores) {
    constexpr int kWidth = kPackWidth<T>;
    T* const to = reinterpret_cast<T*>(scores) + row() * kRounded + half() * kOwn;
#pragma unroll
    for (int j = 0; j < kOwn; j += kWidth) {
      Pack<T, kWidth> pack;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) pack.values[k] = from_float<T>(values[j + k]);
      store_pack(to + j, pack);
    }
  }

  __device__ void multiply_others(const float* left_rows, const T* other,
                                  TileSums<T> (&sums)[kChunks]) {
#pragma unroll
    for (int t = 0; t < kOtherTiles; ++t) {
      TileLeft<T> left;
      left.load(reinterpret_cast<const T*>(left_rows) + t * kTile, kRounded);
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (c >= chunks_) continue;
        multiply<false>(sums[c], left, other + t * kTile * Tiles::kStride + c * kTile,
                        Tiles::kStride);
      }
    }
  }

  __device__ void store(const BackwardOperands<T>& op, const TileSums<T> (&sums)[kChunks], T* rows,
                        std::int64_t stride) {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c >= chunks_) continue;
      sums[c].store(scores_, Tiles::kScoreStride);
      __syncwarp();
      const int column = c * kTile + half() * kTile / 2;
      if (row_ < op.shape.sequence) {
        store_half_row(scores_ + row() * Tiles::kScoreStride + half() * kTile / 2, 1.0F,
                       rows + row_ * stride + column, op.shape.size - column, op.packed);
      }
      __syncwarp();
    }
  }

  float* scores_;   // (16, kOthers); also the probabilities
  float* d_probs_;  // likewise; also the gradients of the scores
  int chunks_;      // of 16 columns that the head has
  std::int64_t row_;
  TileSums<T> d_first_[kChunks];                 // of k or q
  TileSums<T> d_second_[kByKeys ? kChunks : 1];  // of v
};

}  // namespace dstune::cuda::own_backward
