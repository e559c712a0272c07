// What a warp does in attention's forward pass with its queries, all in registers.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/attention/forward_warp.cuh"
#include "kernels/cuda/attention/tensor_tiles.cuh"

namespace dstune::cuda::tensor {

/// Sizes that keep a thread within its 255 registers, and two blocks on a multiprocessor of 8.0.
template <class T, int kHead>
struct ForwardSizes {
  static constexpr int kAtoms = 2;
  static constexpr int kRows = kAtoms * kTile;  ///< of a warp
  static constexpr int kKeys = kHead > 64 ? 32 : 64;
  static constexpr int kMostWarps = 4;
  static constexpr bool kKeepsQueries = kHead <= 64;
  static constexpr int kStage = 2 * kKeys * TensorTile<T, kHead>::kStride;  ///< K and V, elements

  /// The shared memory of a block: two stages, and the queries; those that are kept lie where the
  /// second stage comes.
  static constexpr std::size_t bytes(int warps) {
    const int own = warps * kRows * TensorTile<T, kHead>::kStride;
    return static_cast<std::size_t>(2 * kStage + (kKeepsQueries ? 0 : own)) * sizeof(T);
  }
  static_assert(!kKeepsQueries || kMostWarps * kRows * TensorTile<T, kHead>::kStride <= kStage);
};

template <class T, int kHead>
class ForwardRows {
 public:
  using Sizes = ForwardSizes<T, kHead>;
  using Tile = TensorTile<T, kHead>;

  __device__ ForwardRows(const HeadShape& shape, int first_query)
      : first_(first_query), scale_(shape.scale * kLog2E) {
    clear(out_);
  }

  /// Takes the tile of its queries, when it is filled.
  __device__ void take_queries(const Tile& q) { q_.take(q); }

  /// Attends to the keys from `first_key` on.
  __device__ void attend(const Tile& k, const Tile& v, int first_key, const Sight<int>& sight,
                         const ScoreDropout& dropout) {
    Scores scores;
    clear(scores);
    q_.template multiply<Sizes::kKeys>(scores, k);
    if (!sight.sees_all(first_, Sizes::kRows, first_key, Sizes::kKeys)) {
      hide_rest(scores, first_key, sight);
    }
    follow(scores);
    exponentiate(scores);
#pragma unroll
    for (int t = 0; t < Sizes::kKeys / kTile; ++t) {
      if (dropout.drops()) drop(scores, t, first_key, dropout);
      Left probabilities[Sizes::kAtoms];
#pragma unroll
      for (int a = 0; a < Sizes::kAtoms; ++a) {
        round_sums<T>(probabilities[a], scores[a][2 * t], scores[a][2 * t + 1]);
      }
      multiply_rows<T>(out_, probabilities, v, t * kTile);
    }
  }

  /// @param out, lse  of the head
  __device__ void finish(const ForwardOperands<T>& op, T* out, float* lse) const {
#pragma unroll
    for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float sum = over_row(sum_[a][h], [](float x, float y) { return x + y; });
        const int query = query_of(a, h);
        if (query >= op.shape.sequence) continue;
        if (own_column() == 0) lse[query] = (largest_[a][h] + log2f(sum)) * own_forward::kLn2;
        const float factor = op.shape.keep_factor / sum;
#pragma unroll
        for (int n = 0; n < kHead / kColumns; ++n) {
          store_pair(out + query * op.out.stride, n * kColumns + own_column(), op.shape.size,
                     op.packed, out_[a][n][2 * h] * factor, out_[a][n][2 * h + 1] * factor);
        }
      }
    }
  }

 private:
  static constexpr int kTiles = Sizes::kKeys / kColumns;
  using Scores = Sums[Sizes::kAtoms][kTiles];

  /// The query of half h of this lane's rows in an atom.
  __device__ int query_of(int atom, int h) const {
    return first_ + atom * kTile + h * 8 + own_row();
  }

  template <class F>
  __device__ static float over_row(float value, F&& combine) {
    value = combine(value, __shfl_xor_sync(kAll, value, 1));
    return combine(value, __shfl_xor_sync(kAll, value, 2));
  }

  __device__ void hide_rest(Scores& scores, int first_key, const Sight<int>& sight) const {
    const int own = first_key + own_column();
#pragma unroll
    for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int key = own + n * kColumns + i % 2;
          if (!sight.sees(query_of(a, i / 2), key)) scores[a][n][i] = -INFINITY;
        }
      }
    }
  }

  // What the sums are relative to changes only when a score is much larger than before.
  __device__ void follow(const Scores& scores) {
    float largest[Sizes::kAtoms][2];
    bool outgrown = false;
#pragma unroll
    for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        float value = -INFINITY;
#pragma unroll
        for (int n = 0; n < kTiles; ++n) {
          value = fmaxf(value, fmaxf(scores[a][n][2 * h], scores[a][n][2 * h + 1]));
        }
        largest[a][h] = over_row(value, [](float x, float y) { return fmaxf(x, y); }) * scale_;
        outgrown |= !(largest[a][h] <= largest_[a][h] + own_forward::kSlack);
      }
    }
    if (__any_sync(kAll, outgrown ? 1 : 0) != 0) rescale(largest);
  }

  __device__ void rescale(const float (&largest)[Sizes::kAtoms][2]) {
#pragma unroll
    for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float before = largest_[a][h];
        largest_[a][h] = fmaxf(before, largest[a][h]);
        const float factor = exp2_fast(before - largest_[a][h]);
        sum_[a][h] *= factor;
#pragma unroll
        for (Sums& sums : out_[a]) {
          sums[2 * h] *= factor;
          sums[2 * h + 1] *= factor;
        }
      }
    }
  }

  __device__ void exponentiate(Scores& scores) {
#pragma unroll
    for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float exponent = fmaf(scores[a][n][i], scale_, -largest_[a][i / 2]);
          scores[a][n][i] = exp2_fast(exponent);
          sum_[a][i / 2] += scores[a][n][i];
        }
      }
    }
  }

  // It takes 16 keys: all of them at once would need more registers than there are.
  __device__ void drop(Scores& scores, int tile, int first_key, const ScoreDropout& dropout) const {
#pragma unroll
    for (int a = 0; a < Sizes::kAtoms; ++a) {
      const int own_key = first_key + tile * kTile + own_column();
      const std::uint64_t group = dropout.group_of(query_of(a, 0), own_key);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint64_t bits = dropout.bits<true>(group, i);
#pragma unroll
        for (int place = 0; place < 4; ++place) {
          float& value = scores[a][2 * tile + place % 2][place / 2 * 2 + i];
          value = dropout.keeps(bits, place) ? value : 0;
        }
      }
    }
  }

  int first_;    // query
  float scale_;  // of the scores, as exponents of 2
  LeftRows<T, kHead, Sizes::kAtoms, Sizes::kKeepsQueries> q_;
  Sums out_[Sizes::kAtoms][kHead / kColumns];
  float largest_[Sizes::kAtoms][2] = {{own_forward::kLowest, own_forward::kLowest},
                                      {own_forward::kLowest, own_forward::kLowest}};
  float sum_[Sizes::kAtoms][2] = {};  // of this lane's columns
};

}  // namespace dstune::cuda::tensor
