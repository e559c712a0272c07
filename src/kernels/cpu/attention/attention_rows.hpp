// What becomes of one query's scores: probabilities, and their gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/device/operations/attention.hpp"
#include "core/device/random_bits.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

/// Keys [first, end).
struct Keys {
  std::int64_t first = 0;
  std::int64_t end = 0;

  std::int64_t count() const { return end - first; }
};

/// The keys that one of the queries [first, last) sees.
inline Keys keys_of(const AttentionShape& shape, std::int64_t first, std::int64_t last) {
  return {std::max<std::int64_t>(first - shape.back(), 0),
          std::min(last + shape.ahead(), shape.sequence)};
}

/// A query's scores with the keys of its block, of which it sees some.
struct ScoreRow {
  float* scores;  ///< (keys.count())
  std::int64_t query;
  Keys keys;
  std::int64_t from;  ///< it sees the keys [from, to), counted from keys.first
  std::int64_t to;

  ScoreRow(const AttentionShape& shape, std::int64_t row, Keys of_block, float* values)
      : scores(values), query(row), keys(of_block) {
    const Keys seen = keys_of(shape, row, row + 1);
    from = seen.first - keys.first;
    to = seen.end - keys.first;
  }

  /// Sets to 0 in `values` what the query does not see.
  void hide_rest(float* values) const {
    std::fill(values, values + from, 0.0F);
    std::fill(values + to, values + keys.count(), 0.0F);
  }
};

struct ScoreDropout {
  std::uint64_t key;
  ScoreGroups groups;
  std::uint32_t threshold;
  float factor;  ///< of what is kept

  /// @param head  batch * heads + head
  ScoreDropout(const AttentionShape& shape, std::int64_t head)
      : key(make_key(shape.seed, static_cast<std::uint64_t>(head))),
        groups(shape.sequence),
        threshold(score_threshold(shape.dropout)),
        factor(static_cast<float>(1 / (1 - shape.dropout))) {}

  float multiplier(std::int64_t i, std::int64_t j) const {
    const std::uint64_t bits = random_bits(key, groups.index(i, j));
    return is_score_kept(bits, score_place(i, j), threshold) ? factor : 0.0F;
  }
};

/// Scores become cap * tanh(score / cap).
inline void cap_row(const ScoreRow& row, float cap) {
#pragma omp simd
  for (std::int64_t j = row.from; j < row.to; ++j) {
    row.scores[j] = cap * fast_tanh(row.scores[j] / cap);
  }
}

/// Scores become probabilities; what the query does not see becomes 0.
/// @return  log(sum(exp(scores)))
inline float softmax_row(const ScoreRow& row) {
  float* const scores = row.scores;
  float largest = scores[row.from];
#pragma omp simd reduction(max : largest)
  for (std::int64_t j = row.from; j < row.to; ++j) {
    largest = scores[j] > largest ? scores[j] : largest;
  }
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = row.from; j < row.to; ++j) {
    scores[j] = fast_exp(scores[j] - largest);
    sum += scores[j];
  }
  const float factor = 1.0F / sum;
#pragma omp simd
  for (std::int64_t j = row.from; j < row.to; ++j) scores[j] *= factor;
  row.hide_rest(scores);
  return largest + std::log(sum);
}

inline void drop_row(const ScoreDropout& dropout, const ScoreRow& row) {
#pragma omp simd
  for (std::int64_t j = row.from; j < row.to; ++j) {
    row.scores[j] *= dropout.multiplier(row.query, row.keys.first + j);
  }
}

/// In: scores S and d_probs = dO V^T of a query. Out: scores become the (dropped) probabilities
/// that multiplied V, d_probs become dS = P (dP - D) with D = dO . O, times the scale of S.
struct RowGradient {
  float lse;
  float d_dot_out;
  float scale;
  float softcap;  ///< 0: none

  /// @param dropout  nullptr: none
  void apply(const ScoreRow& row, float* d_probs, const ScoreDropout* dropout) const {
    const auto all = [](std::int64_t) { return 1.0F; };
    if (dropout == nullptr) return apply_with(row, d_probs, all);
    apply_with(row, d_probs, [&row, dropout](std::int64_t j) {
      return dropout->multiplier(row.query, row.keys.first + j);
    });
  }

 private:
  template <class Multiplier>
  void apply_with(const ScoreRow& row, float* d_probs, Multiplier multiplier) const {
    if (softcap == 0) return apply_to(row, d_probs, multiplier, [](float) { return 1.0F; });
    apply_to(row, d_probs, multiplier, [cap = softcap](float score) {
      return 1.0F - (score / cap) * (score / cap);  // of tanh
    });
  }

  template <class Multiplier, class Slope>
  void apply_to(const ScoreRow& row, float* d_probs, Multiplier multiplier, Slope slope) const {
    float* const scores = row.scores;
#pragma omp simd
    for (std::int64_t j = row.from; j < row.to; ++j) {
      const float score = scores[j];
      const float p = fast_exp(score - lse);
      const float kept = multiplier(j);
      scores[j] = p * kept;
      d_probs[j] = p * (d_probs[j] * kept - d_dot_out) * scale * slope(score);
    }
    row.hide_rest(scores);
    row.hide_rest(d_probs);
  }
};

}  // namespace dstune::cpu
