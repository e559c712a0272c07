// A head's rows, and the probabilities that dropout leaves it.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention/head_shape.hpp"

namespace dstune::cuda {

/// Row 0 of head `head`.
template <class T>
__device__ inline T* rows_of_head(HeadRows<T> rows, const HeadShape& shape, std::int64_t head) {
  return rows.first + head / shape.heads * shape.sequence * rows.stride +
         head % shape.heads * shape.size;
}

/// SplitMix64's finaliser, as in the CPU's backend.
__device__ inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

/// What the probabilities of one head are multiplied with.
class ScoreDropout {
 public:
  __device__ ScoreDropout(const HeadShape& shape, std::int64_t head)
      : threshold_(shape.threshold), factor_(shape.keep_factor), sequence_(shape.sequence) {
    if (threshold_ != 0) {
      key_ = mix(mix(shape.seed + kGolden) + static_cast<std::uint64_t>(head));
    }
  }

  __device__ float multiplier(std::int64_t query, std::int64_t key) const {
    if (threshold_ == 0) return factor_;
    const auto index = static_cast<std::uint64_t>(query * sequence_ + key);
    const auto random = static_cast<std::uint32_t>(mix(key_ + index * kGolden) >> 32U);
    return random >= threshold_ ? factor_ : 0.0F;
  }

 private:
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15U;

  std::uint32_t threshold_;
  float factor_;
  std::int64_t sequence_;
  std::uint64_t key_ = 0;
};

}  // namespace dstune::cuda
