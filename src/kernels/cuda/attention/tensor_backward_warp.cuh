// What a warp does in attention's backward pass with its keys or queries, all in registers.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/operands.cuh"
#include "kernels/cuda/attention/tensor_tiles.cuh"

namespace dstune::cuda::tensor {

/// Sizes that keep a thread within its 255 registers.
template <class T, int kHead, bool kByKeys>
struct BackwardSizes {
  static constexpr int kAtoms = kHead > 64 ? 1 : 2;
  static constexpr int kRows = kAtoms * kTile;  ///< of a warp
  static constexpr int kOthers = 32;
  static constexpr int kMostWarps = 4;
  static constexpr bool kKeepsOwn = kHead > 64 && !kByKeys;
  static constexpr int kTileElements = kOthers * TensorTile<T, kHead>::kStride;

  /// The shared memory of a block: two stages of the others, and of the queries' sums where they
  /// are the others; the own rows.
  static constexpr std::size_t bytes(int warps) {
    const int own = 2 * warps * kRows * TensorTile<T, kHead>::kStride;
    return static_cast<std::size_t>(4 * kTileElements + own) * sizeof(T) +
           (kByKeys ? 4 * kOthers * sizeof(float) : 0);
  }
};

/// The sums of 32 queries, in shared memory.
struct QuerySums {
  const float* lse;
  const float* d_dot_out;
};

template <class T, int kHead, bool kByKeys>
class BackwardRows {
 public:
  using Sizes = BackwardSizes<T, kHead, kByKeys>;
  using Tile = TensorTile<T, kHead>;

  __device__ BackwardRows(const HeadShape& shape, int first_row)
      : first_(first_row), scale_(shape.scale) {
    clear(d_first_);
    clear(d_second_);
  }

  /// Takes the own tiles, when they are filled.
  /// @param lse, d_dot_out  of the head; read where queries are the own rows
  __device__ void take(const Tile& first, const Tile& second, const HeadShape& shape,
                       const float* lse, const float* d_dot_out) {
    first_rows_.take(first);
    second_rows_.take(second);
    if constexpr (!kByKeys) {
#pragma unroll
      for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int query = row_of(a, h);
          const bool exists = query < shape.sequence;
          lse_[a][h] = exists ? lse[query] * kLog2E : 0;
          dot_[a][h] = exists ? d_dot_out[query] : 0;
        }
      }
    }
  }

  /// Adds the gradients with the other rows from `first_other` on. Rows that do not exist are 0,
  /// their sums too.
  __device__ void differentiate(const Tile& first, const Tile& second, int first_other,
                                const QuerySums& queries, const Sight<int>& sight,
                                const ScoreDropout& dropout) {
    Scores p;
    clear(p);
    first_rows_.template multiply<Sizes::kOthers>(p, first);
    exponentiate(p, queries.lse);
    if (!sight.sees_all(first_, Sizes::kRows, first_other, Sizes::kOthers)) {
      hide_rest(p, first_other, sight);
    }
    Scores d;
    clear(d);
    second_rows_.template multiply<Sizes::kOthers>(d, second);
    std::uint32_t dropped[Sizes::kAtoms] = {};
#pragma unroll
    for (int t = 0; t < Sizes::kOthers / kTile; ++t) {
      if (dropout.drops()) drop(dropped, d, t, first_other, dropout);
    }
    subtract_means(d, p, queries.d_dot_out);
    accumulate(d_first_, d, first);
    if constexpr (kByKeys) {
      if (dropout.drops()) clear_dropped(p, dropped);
      accumulate(d_second_, p, second);
    }
  }

  /// @param d_first, d_second  the head's rows
  __device__ void finish(const BackwardOperands<T>& op, T* d_first, T* d_second) const {
    store(op, d_first_, scale_, d_first, op.d_k_or_q.stride);
    if constexpr (kByKeys) store(op, d_second_, op.shape.keep_factor, d_second, op.d_v.stride);
  }

 private:
  static constexpr int kTiles = Sizes::kOthers / kColumns;
  using Scores = Sums[Sizes::kAtoms][kTiles];
  using Gradients = Sums[Sizes::kAtoms][kHead / kColumns];

  /// The row of half h of this lane's in an atom.
  __device__ int row_of(int atom, int h) const { return first_ + atom * kTile + h * 8 + own_row(); }

  __device__ void exponentiate(Scores& scores, const float* lse) const {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      float sums[2] = {};
      if constexpr (kByKeys) load_sums(sums, lse, n, kLog2E);
#pragma unroll
      for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float sum = kByKeys ? sums[i % 2] : lse_[a][i / 2];
          scores[a][n][i] = exp2_fast(fmaf(scores[a][n][i], scale_ * kLog2E, -sum));
        }
      }
    }
  }

  // d = p (d - mean)
  __device__ void subtract_means(Scores& d, const Scores& p, const float* d_dot_out) const {
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      float means[2] = {};
      if constexpr (kByKeys) load_sums(means, d_dot_out, n, 1);
#pragma unroll
      for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          d[a][n][i] = p[a][n][i] * (d[a][n][i] - (kByKeys ? means[i % 2] : dot_[a][i / 2]));
        }
      }
    }
  }

  // Loads the sums of this lane's two columns.
  __device__ static void load_sums(float (&sums)[2], const float* from, int tile, float factor) {
    const auto pair = load_pack<2>(from + tile * kColumns + own_column());
    sums[0] = pair.values[0] * factor;
    sums[1] = pair.values[1] * factor;
  }

  __device__ void hide_rest(Scores& p, int first_other, const Sight<int>& sight) const {
    const int own = first_other + own_column();
#pragma unroll
    for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int other = own + n * kColumns + i % 2;
          if (!sight.sees(row_of(a, i / 2), other)) p[a][n][i] = 0;
        }
      }
    }
  }

  // Bit n * 4 + i of dropped[a] for each value that dropout takes, which leaves d no gradient. Of
  // 16 columns: all of them at once would need more registers than there are.
  __device__ void drop(std::uint32_t (&dropped)[Sizes::kAtoms], Scores& d, int tile,
                       int first_other, const ScoreDropout& dropout) const {
    const int other = first_other + tile * kTile + own_column();
#pragma unroll
    for (int a = 0; a < Sizes::kAtoms; ++a) {
      const int own = row_of(a, 0);
      const std::uint64_t group =
          kByKeys ? dropout.group_of(other, own) : dropout.group_of(own, other);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint64_t bits = dropout.bits<!kByKeys>(group, i);
#pragma unroll
        for (int place = 0; place < 4; ++place) {
          const int n = 2 * tile + (kByKeys ? place / 2 : place % 2);
          const int value = (kByKeys ? place % 2 : place / 2) * 2 + i;
          const bool keeps = dropout.keeps(bits, place);
          d[a][n][value] = keeps ? d[a][n][value] * dropout.factor() : 0;
          if (!keeps) dropped[a] |= 1U << static_cast<unsigned>(n * 4 + value);
        }
      }
    }
  }

  __device__ static void clear_dropped(Scores& p, const std::uint32_t (&dropped)[Sizes::kAtoms]) {
#pragma unroll
    for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
      for (int n = 0; n < kTiles; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if ((dropped[a] >> static_cast<unsigned>(n * 4 + i) & 1U) != 0) p[a][n][i] = 0;
        }
      }
    }
  }

  __device__ static void accumulate(Gradients& sums, const Scores& scores, const Tile& other) {
#pragma unroll
    for (int t = 0; t < Sizes::kOthers / kTile; ++t) {
      Left left[Sizes::kAtoms];
#pragma unroll
      for (int a = 0; a < Sizes::kAtoms; ++a) {
        round_sums<T>(left[a], scores[a][2 * t], scores[a][2 * t + 1]);
      }
      multiply_rows<T>(sums, left, other, t * kTile);
    }
  }

  template <int kCount>
  __device__ void store(const BackwardOperands<T>& op, const Sums (&sums)[Sizes::kAtoms][kCount],
                        float factor, T* rows, std::int64_t stride) const {
#pragma unroll
    for (int a = 0; a < Sizes::kAtoms; ++a) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (row_of(a, h) >= op.shape.sequence) continue;
#pragma unroll
        for (int n = 0; n < kCount; ++n) {
          store_pair(rows + row_of(a, h) * stride, n * kColumns + own_column(), op.shape.size,
                     op.packed, sums[a][n][2 * h] * factor, sums[a][n][2 * h + 1] * factor);
        }
      }
    }
  }

  int first_;  // row
  float scale_;
  LeftRows<T, kHead, Sizes::kAtoms, Sizes::kKeepsOwn> first_rows_;   // K or Q
  LeftRows<T, kHead, Sizes::kAtoms, Sizes::kKeepsOwn> second_rows_;  // V or d_O
  Gradients d_first_;                                                // of K or Q
  Sums d_second_[Sizes::kAtoms][kByKeys ? kHead / kColumns : 1];     // of V
  float lse_[Sizes::kAtoms][2];  // of own queries, as exponents of 2
  float dot_[Sizes::kAtoms][2];  // of own queries
};

}  // namespace dstune::cuda::tensor
