// A head's rows, and the probabilities that dropout leaves it.
#pragma once

#include <cstdint>

#include "core/device/random_bits.hpp"
#include "kernels/cuda/attention/head_shape.hpp"

namespace dstune::cuda {

/// Row 0 of head `head`.
template <class T>
__device__ inline T* rows_of_head(HeadRows<T> rows, const HeadShape& shape, std::int64_t head) {
  return rows.first + head / shape.heads * shape.sequence * rows.stride +
         head % shape.heads * shape.size;
}

/// What the probabilities of one head are multiplied with.
class ScoreDropout {
 public:
  __device__ ScoreDropout(const HeadShape& shape, std::int64_t head)
      : threshold_(shape.threshold), factor_(shape.keep_factor), sequence_(shape.sequence) {
    if (threshold_ != 0) key_ = make_key(shape.seed, static_cast<std::uint64_t>(head));
  }

  __device__ float multiplier(std::int64_t query, std::int64_t key) const {
    if (threshold_ == 0) return factor_;
    const auto index = static_cast<std::uint64_t>(query * sequence_ + key);
    return is_kept(key_, index, threshold_) ? factor_ : 0.0F;
  }

  __device__ bool drops() const { return threshold_ != 0; }

  /// The key of is_kept() under which (query, key + i) has the index i.
  __device__ std::uint64_t key_of(std::int64_t query, std::int64_t key) const {
    return key_from(key_, static_cast<std::uint64_t>(query * sequence_ + key));
  }
  __device__ bool keeps(std::uint64_t key, std::uint64_t index) const {
    return is_kept(key, index, threshold_);
  }
  /// Likewise of the query that is `index` rows after the key's.
  __device__ bool keeps_query(std::uint64_t key, int index) const {
    const auto step = key_from(0, static_cast<std::uint64_t>(sequence_));
    return is_kept(key + static_cast<std::uint64_t>(index) * step, 0, threshold_);
  }
  __device__ float factor() const { return factor_; }

 private:
  std::uint32_t threshold_;
  float factor_;
  std::int64_t sequence_;
  std::uint64_t key_ = 0;
};

}  // namespace dstune::cuda
