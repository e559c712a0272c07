// The choice of experts for each token, and the loss that keeps experts evenly used.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device/operations/work.hpp"
#include "core/device/random_bits.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// Tokens go to experts by lot. An expert's popularity is exp(imbalance * n), where n is drawn from
/// a normal distribution: with 0 the experts are used evenly, and the larger it is, the more uneven
/// are their tokens.
struct ExpertDraw {
  std::uint64_t seed = 0;
  double imbalance = 0;
};

/// The logarithm of the popularity of `expert`. The sum of 12 uniform numbers, less 6, stands for a
/// normal number.
constexpr float log_popularity(const ExpertDraw& draw, std::int64_t expert) {
  constexpr int kTerms = 12;
  const std::uint64_t key = make_key(draw.seed, 1);
  double sum = -kTerms / 2.0;
  for (int term = 0; term < kTerms; ++term) {
    const auto index = static_cast<std::uint64_t>(expert * kTerms + term);
    sum += static_cast<double>(random_bits(key, index) >> 32U) * 0x1p-32;
  }
  return static_cast<float>(draw.imbalance * sum);
}

/// A number above 0 and below 1 that is independent for each pair. The experts of a token with the
/// largest log_popularity - log(-log(number)) are a draw without replacement (Gumbel-top-k, Kool et
/// al. 2019).
constexpr float drawn_number(const ExpertDraw& draw, std::int64_t pair) {
  const std::uint64_t bits = random_bits(make_key(draw.seed), static_cast<std::uint64_t>(pair));
  return (static_cast<float>(bits >> 41U) + 0.5F) * 0x1p-23F;
}

/// The columns of the k largest scores of each row, the largest first and among equal ones the
/// first column first; or k columns by lot.
struct TopK {
  Matrix scores;   ///< fp32 (M, E)
  Matrix values;   ///< fp32 (M, k): the scores of the chosen
  Tensor columns;  ///< int64 (M k)
  std::optional<ExpertDraw> draw = std::nullopt;
};

/// d_scores is d_values in the chosen columns, and 0 in the others.
struct TopKBackward {
  Matrix d_values;  ///< fp32 (M, k)
  Tensor columns;
  Matrix d_scores;  ///< fp32 (M, E)
};

/// out(i, :) = in(i, :) / sums(i), where sums(i) is the sum of the row.
struct DivideBySum {
  Matrix in;    ///< fp32 (M, k)
  Tensor sums;  ///< fp32 (M)
  Matrix out;
};

/// d_in = d_out / sum - rowsum(d_out * in) / sum^2
struct DivideBySumBackward {
  Matrix d_out;
  Matrix in;
  Tensor sums;
  Matrix d_in;
};

/// The S = M k pairs of a token and an expert, sorted by expert; the pairs of one expert keep their
/// order.
struct SortByExpert {
  Tensor experts;       ///< int64 (S), each below groups
  std::int64_t chosen;  ///< k
  std::int64_t groups;  ///< E
  Tensor order;         ///< int64 (S): the pair at each place
  Tensor tokens;        ///< int64 (S): that pair's row of M
  Tensor places;        ///< int64 (S): the place of each pair
  Tensor ends;          ///< int8 (4 E), which are E int32: the place behind each expert's last pair
};

inline Work work_of(const TopK& op) {
  return {"top_k", count(op.scores), {op.scores}, {op.values, op.columns}};
}
// The scores' gradient is zeroed first.
inline Work work_of(const TopKBackward& op) {
  const Operand chosen = Operand(op.d_scores).of(op.d_values.size());
  return {"top_k_backward", 0, {op.d_values, op.columns}, {op.d_scores, chosen}};
}
// The kernels are a sum, a copy and a quotient.
inline Work work_of(const DivideBySum& op) {
  return {"divide_by_sum",
          2 * count(op.in),
          {op.in, op.in, op.out, op.sums},
          {op.sums, op.out, op.out}};
}
inline Work work_of(const DivideBySumBackward& op) {
  return {
      "divide_by_sum_backward", 6 * count(op.in), {op.d_out, op.in, op.sums}, {op.d_in, op.d_in}};
}
inline Work work_of(const SortByExpert& op) {
  return {"sort_by_expert",
          count(op.experts),
          {op.experts, op.order, op.order},
          {op.order, op.tokens, op.places, op.ends}};
}

/// counts(e) += the number of pairs of expert e, sums(e) += the sum of its probabilities.
struct AddRouting {
  Matrix probs;    ///< (M, E), any floating-point type
  Tensor experts;  ///< int64 (M k)
  Tensor counts;   ///< fp32 (E)
  Tensor sums;     ///< fp32 (E)
};

/// loss += factor * E * sum over e of counts(e) / rows * sums(e) / rows
struct BalanceLoss {
  Tensor counts;
  Tensor sums;
  std::int64_t rows;  ///< the rows of all layers together
  double factor = 1;
  Tensor loss;  ///< fp32, one element
};

/// d_probs(i, e) = factor * E * counts(e) / rows^2
struct BalanceLossBackward {
  Tensor counts;
  std::int64_t rows;
  double factor = 1;
  Matrix d_probs;  ///< (M, E)
};

inline Work work_of(const AddRouting& op) {
  return {"add_routing", count(op.probs), {op.probs, op.experts}, {op.counts, op.sums}};
}
inline Work work_of(const BalanceLoss& op) {
  return {"balance_loss", 2 * count(op.counts), {op.counts, op.sums}, {number(op.loss)}};
}
inline Work work_of(const BalanceLossBackward& op) {
  return {"balance_loss_backward", count(op.d_probs), {op.counts}, {op.d_probs}};
}

}  // namespace dstune
