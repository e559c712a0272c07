// Which experts a token goes to, and the order of all rows by expert.
#pragma once

#include <cstdint>
#include <optional>

#include "core/device/expert_draw.hpp"
#include "core/device/operations/work.hpp"
#include "core/device/tensor.hpp"

namespace dstune {

/// The columns of the k largest scores of each row, the largest first, of equal ones the first
/// column first; or k columns by lot.
struct TopK {
  Matrix scores;   ///< fp32 (M, E)
  Matrix values;   ///< fp32 (M, k): the scores of the chosen
  Tensor columns;  ///< int64 (M k)
  std::optional<ExpertDraw> draw = std::nullopt;
};

/// d_scores is d_values in the chosen columns, 0 in others.
struct TopKBackward {
  Matrix d_values;  ///< fp32 (M, k)
  Tensor columns;
  Matrix d_scores;  ///< fp32 (M, E)
};

/// out(i, :) = in(i, :) / sums(i), the sum of the row.
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

/// The S = M k pairs of a token and an expert, sorted by expert, those of one in their order.
struct SortByExpert {
  Tensor experts;       ///< int64 (S), each below groups
  std::int64_t chosen;  ///< k
  std::int64_t groups;  ///< E
  Tensor order;         ///< int64 (S): the pair that comes at a place
  Tensor tokens;        ///< int64 (S): its row of M
  Tensor places;        ///< int64 (S): the place of a pair
  Tensor ends;          ///< int8 (4 E), which are E int32: the place behind an expert's last pair
};

inline Work work_of(const TopK& op) {
  return {"top_k", count(op.scores), {op.scores}, {op.values, op.columns}};
}
// Zeros first.
inline Work work_of(const TopKBackward& op) {
  const Operand chosen = Operand(op.d_scores).of(op.d_values.size());
  return {"top_k_backward", 0, {op.d_values, op.columns}, {op.d_scores, chosen}};
}
// A sum, a copy and a quotient.
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

}  // namespace dstune
