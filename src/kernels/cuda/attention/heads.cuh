// A head's rows, and the probabilities that dropout leaves it.
#pragma once

#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "kernels/cuda/attention/head_shape.hpp"

namespace dstune::cuda {

/// Row 0 of head `head`, of those that `rows` has.
template <class T>
__device__ inline T* rows_of_head(HeadRows<T> rows, const HeadShape& shape, std::int64_t head) {
  return rows.first + head / rows.heads * shape.sequence * rows.stride +
         head % rows.heads * rows.head_stride;
}

/// The keys that a row of queries sees, or the queries that see a row of keys: others in
/// [row - before, row + after] that there are.
/// @tparam Index  int where registers are few
template <class Index = std::int64_t>
struct Sight {
  Index before;
  Index after;
  Index sequence;

  __device__ Sight(const HeadShape& shape, bool of_keys)
      : before(static_cast<Index>(of_keys ? shape.ahead : shape.back)),
        after(static_cast<Index>(of_keys ? shape.back : shape.ahead)),
        sequence(static_cast<Index>(shape.sequence)) {}

  __device__ Index first(Index row) const { return row > before ? row - before : 0; }
  __device__ Index end(Index row) const { return min(row + after + 1, sequence); }

  __device__ bool sees(Index row, Index other) const {
    return other >= row - before && other <= row + after && other < sequence;
  }
  /// Whether one of the rows [row, row + rows) may see one of the others [other, other + others).
  __device__ bool sees_any(Index row, int rows, Index other, int others) const {
    return other + others > row - before && other < row + rows + after;
  }
  /// Whether each of the former sees each of the latter, which are all there.
  __device__ bool sees_all(Index row, int rows, Index other, int others) const {
    return other >= row + rows - 1 - before && other + others - 1 <= row + after &&
           other + others <= sequence;
  }
};

/// What the probabilities of one head are multiplied with.
class ScoreDropout {
 public:
  __device__ ScoreDropout(const HeadShape& shape, std::int64_t head)
      : threshold_(shape.threshold), factor_(shape.keep_factor), groups_(shape.sequence) {
    if (threshold_ != 0) key_ = make_key(shape.seed, static_cast<std::uint64_t>(head));
  }

  __device__ float multiplier(std::int64_t query, std::int64_t key) const {
    if (threshold_ == 0) return factor_;
    const std::uint64_t bits = random_bits(key_, groups_.index(query, key));
    return is_score_kept(bits, score_place(query, key), threshold_) ? factor_ : 0.0F;
  }

  __device__ bool drops() const { return threshold_ != 0; }

  /// The group that (query, key) is in, for bits().
  __device__ std::uint64_t group_of(int query, int key) const {
    return key_from(key_, groups_.index(query, key));
  }
  /// The hash of that group, or of one some keys or queries behind in the same 8.
  template <bool kKeys>
  __device__ std::uint64_t bits(std::uint64_t group, int behind) const {
    const auto index = static_cast<std::uint64_t>(behind);
    if (kKeys) return random_bits(group, index);
    return split_mix(group + index * key_from(0, groups_.per_row));
  }
  __device__ bool keeps(std::uint64_t bits, int place) const {
    return is_score_kept(bits, static_cast<unsigned>(place), threshold_);
  }
  /// The factor of what is kept.
  __device__ float factor() const { return factor_; }

 private:
  std::uint32_t threshold_;
  float factor_;
  ScoreGroups groups_;
  std::uint64_t key_ = 0;
};

}  // namespace dstune::cuda
