// What a warp does in attention's forward pass with its 16 queries.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/operands.cuh"
#include "kernels/cuda/attention/tiles.cuh"

namespace dstune::cuda::own_forward {

constexpr unsigned kAll = 0xffffffffU;
/// Powers of 2 by which scores may exceed what their sums are relative to.
constexpr float kSlack = 8;
constexpr float kLog2E = 1.44269504F;
constexpr float kLn2 = 0.693147181F;
/// Below every score, but finite: a row may see none of the first keys of its warp.
constexpr float kLowest = -1e30F;

/// Sizes of tiles: what fits into the shared memory that every GPU has.
template <class T, int kSize>
struct ForwardTiles {
  static constexpr bool kWide = sizeof(T) == 4;
  static constexpr int kMostWarps = kWide && kSize > 64 ? 2 : 4;
  static constexpr int kKeys = (kWide ? 32 : 64) / (kSize > 64 ? 2 : 1);
  static constexpr int kStride = tile_stride<T>(kSize);
  static constexpr int kScoreStride = kKeys + 4;

  /// The shared memory of a block.
  static constexpr std::size_t bytes(int warps) {
    const auto rows = static_cast<std::size_t>(kTile * warps);
    return (rows + 2 * kKeys) * kStride * sizeof(T) + rows * kScoreStride * sizeof(float);
  }
};

/// What a warp keeps of its 16 queries. Lane l works on row l % 16 of the scores, half l / 16 of
/// its columns.
template <class T, int kSize>
class ForwardWarp {
 public:
  using Tiles = ForwardTiles<T, kSize>;

  __device__ ForwardWarp(const HeadShape& shape, float* scores, std::int64_t first_query)
      : scores_(scores), chunks_((shape.size + kTile - 1) / kTile), query_(first_query + row()) {
#pragma unroll
    for (TileSums<T>& sums : out_) sums.clear();
  }

  __device__ static int row() { return static_cast<int>(threadIdx.x) % kTile; }
  __device__ static int half() { return static_cast<int>(threadIdx.x) % 32 / kTile; }

  /// Scores with `tiles` times 16 keys.
  __device__ void multiply_keys(const T* q, const T* k, int tiles) {
    TileSums<T> sums[kKeyTiles];
#pragma unroll
    for (TileSums<T>& tile : sums) tile.clear();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c >= chunks_) continue;
      TileLeft<T> left;
      left.load(q + c * kTile, Tiles::kStride);
#pragma unroll
      for (int t = 0; t < kKeyTiles; ++t) {
        if (t >= tiles) continue;
        multiply<true>(sums[t], left, k + t * kTile * Tiles::kStride + c * kTile, Tiles::kStride);
      }
    }
#pragma unroll
    for (int t = 0; t < kKeyTiles; ++t) {
      if (t < tiles) sums[t].store(scores_ + t * kTile, Tiles::kScoreStride);
    }
    __syncwarp();
  }

  /// Scores become probabilities, not divided by their sum yet.
  __device__ void apply_softmax(const HeadShape& shape, const Sight<>& sight,
                                const ScoreDropout& dropout, std::int64_t first_key) {
    const std::int64_t own_key = first_key + half() * kOwn;
    const float* const own = scores_ + row() * Tiles::kScoreStride + half() * kOwn;
    const auto seen_from = static_cast<int>(min(sight.first(query_) - own_key, std::int64_t{kOwn}));
    const auto seen_to = static_cast<int>(min(sight.end(query_) - own_key, std::int64_t{kOwn}));
    float p[kOwn];
    float largest = -INFINITY;
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      p[j] = j >= seen_from && j < seen_to ? own[j] * (shape.scale * kLog2E) : -INFINITY;
      largest = fmaxf(largest, p[j]);
    }
    follow(fmaxf(largest, __shfl_xor_sync(kAll, largest, kTile)));
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      p[j] = exp2f(p[j] - largest_);
      sum_ += p[j];
      p[j] *= dropout.multiplier(query_, own_key + j);
    }
    write(p);
  }

  __device__ void multiply_values(const T* v, int tiles) {
#pragma unroll
    for (int t = 0; t < kKeyTiles; ++t) {
      if (t >= tiles) continue;
      TileLeft<T> left;
      left.load(reinterpret_cast<const T*>(scores_) + t * kTile, kProbabilityStride);
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (c >= chunks_) continue;
        multiply<false>(out_[c], left, v + t * kTile * Tiles::kStride + c * kTile, Tiles::kStride);
      }
    }
    __syncwarp();
  }

  /// @param out, lse  of the head
  __device__ void finish(const ForwardOperands<T>& op, T* out, float* lse) {
    sum_ += __shfl_xor_sync(kAll, sum_, kTile);
    const float factor = 1 / sum_;
    const bool exists = query_ < op.shape.sequence;
    if (exists && half() == 0) lse[query_] = (largest_ + log2f(sum_)) * kLn2;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c >= chunks_) continue;
      out_[c].store(scores_, Tiles::kScoreStride);
      __syncwarp();
      const int column = c * kTile + half() * kTile / 2;
      if (exists) {
        store_half_row(scores_ + row() * Tiles::kScoreStride + half() * kTile / 2, factor,
                       out + query_ * op.out.stride + column, op.shape.size - column, op.packed);
      }
      __syncwarp();
    }
  }

 private:
  static constexpr int kChunks = kSize / kTile;
  static constexpr int kKeyTiles = Tiles::kKeys / kTile;
  static constexpr int kOwn = Tiles::kKeys / 2;
  static constexpr int kProbabilityStride =
      Tiles::kScoreStride * static_cast<int>(sizeof(float) / sizeof(T));

  __device__ void follow(float largest) {
    if (__any_sync(kAll, !(largest <= largest_ + kSlack)) == 0) return;
    const float before = largest_;
    largest_ = fmaxf(before, largest);
    if (is_first_) {
      is_first_ = false;
      return;
    }
    const float factor = exp2f(before - largest_);
    sum_ *= factor;
    scale_sums(factor);
  }

  // The scores have been read.
  __device__ void scale_sums(float factor) {
    __syncwarp();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c >= chunks_) continue;
      out_[c].store(scores_, Tiles::kScoreStride);
      __syncwarp();
      float* const own = scores_ + row() * Tiles::kScoreStride + half() * kTile / 2;
#pragma unroll
      for (int j = 0; j < kTile / 2; ++j) own[j] *= factor;
      __syncwarp();
      out_[c].load(scores_, Tiles::kScoreStride);
      __syncwarp();
    }
  }

  // Over the scores, which both lanes of a row have read by then.
  __device__ void write(const float (&p)[kOwn]) {
    constexpr int kWidth = kPackWidth<T>;
    T* const to = reinterpret_cast<T*>(scores_) + row() * kProbabilityStride + half() * kOwn;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < kOwn; j += kWidth) {
      Pack<T, kWidth> pack;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) pack.values[k] = from_float<T>(p[j + k]);
      store_pack(to + j, pack);
    }
    __syncwarp();
  }

  float* scores_;  // (16, kKeys); also the probabilities
  int chunks_;     // of 16 columns that the head has
  std::int64_t query_;
  TileSums<T> out_[kChunks];
  bool is_first_ = true;     // nothing is in out_ and sum_
  float largest_ = kLowest;  // the exponent that sum_ and out_ are scaled by: that of base 2
  float sum_ = 0;            // of this lane's columns
};

}  // namespace dstune::cuda::own_forward
