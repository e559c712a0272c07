// Causal attention, P = softmax(Q K^T / sqrt(d)), O = P V, by blocks of queries (Dao et al. 2022):
// only the log-sum-exp of each row is kept, backward makes P again from it.
#include "core/device/operations/attention.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/device/random_bits.hpp"
#include "core/device/score_dropout.hpp"
#include "kernels/cpu/attention_head.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

namespace {

constexpr std::int64_t kQueryBlock = 128;

struct ScoreDropout {
  std::uint64_t key;
  ScoreGroups groups;
  std::uint32_t threshold;
  float factor;  // of what is kept

  float multiplier(std::int64_t i, std::int64_t j) const {
    const std::uint64_t bits = random_bits(key, groups.index(i, j));
    return is_score_kept(bits, score_place(i, j), threshold) ? factor : 0.0F;
  }
};

ScoreDropout dropout_of(const AttentionShape& shape, std::int64_t head) {
  return {make_key(shape.seed, static_cast<std::uint64_t>(head)), ScoreGroups(shape.sequence),
          score_threshold(shape.dropout), static_cast<float>(1 / (1 - shape.dropout))};
}

/// Scores of query i become probabilities; what it may not see becomes 0.
/// @return  log(sum(exp(scores)))
float softmax_row(float* scores, std::int64_t visible, std::int64_t keys) {
  float largest = scores[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t j = 0; j < visible; ++j) largest = scores[j] > largest ? scores[j] : largest;
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < visible; ++j) {
    scores[j] = fast_exp(scores[j] - largest);
    sum += scores[j];
  }
  const float factor = 1.0F / sum;
#pragma omp simd
  for (std::int64_t j = 0; j < visible; ++j) scores[j] *= factor;
  std::fill(scores + visible, scores + keys, 0.0F);
  return largest + std::log(sum);
}

void drop_row(const ScoreDropout& dropout, std::int64_t i, float* probs, std::int64_t visible) {
#pragma omp simd
  for (std::int64_t j = 0; j < visible; ++j) probs[j] *= dropout.multiplier(i, j);
}

/// In: scores S and d_probs = dO V^T of query i. Out: scores become the (dropped) probabilities
/// that multiplied V, d_probs become dS = P (dP - D) with D = dO . O, times the scale of S.
struct RowGradient {
  float lse;
  float d_dot_out;
  float scale;

  void apply(float* scores, float* d_probs, std::int64_t visible, std::int64_t keys) const {
#pragma omp simd
    for (std::int64_t j = 0; j < visible; ++j) {
      const float p = fast_exp(scores[j] - lse);
      scores[j] = p;
      d_probs[j] = p * (d_probs[j] - d_dot_out) * scale;
    }
    std::fill(scores + visible, scores + keys, 0.0F);
    std::fill(d_probs + visible, d_probs + keys, 0.0F);
  }

  void apply_with_dropout(const ScoreDropout& dropout, std::int64_t i, float* scores,
                          float* d_probs, std::int64_t visible, std::int64_t keys) const {
#pragma omp simd
    for (std::int64_t j = 0; j < visible; ++j) {
      const float p = fast_exp(scores[j] - lse);
      const float multiplier = dropout.multiplier(i, j);
      scores[j] = p * multiplier;
      d_probs[j] = p * (d_probs[j] * multiplier - d_dot_out) * scale;
    }
    std::fill(scores + visible, scores + keys, 0.0F);
    std::fill(d_probs + visible, d_probs + keys, 0.0F);
  }
};

float dot(const float* x, const float* y, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) sum += x[j] * y[j];
  return sum;
}

void forward_block(const AttentionShape& shape, const ScoreDropout& dropout, const HeadPanels& head,
                   std::int64_t first, std::int64_t last, float* lse, float* probs) {
  const std::int64_t d = shape.head_size;
  const Panel p{probs, last};
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  sgemm({Transpose::no, Transpose::yes, last - first, last, d, scale, 0}, rows_from(head.q, first),
        head.k, p);
  for (std::int64_t i = first; i < last; ++i) {
    float* const scores = probs + (i - first) * last;
    lse[i] = softmax_row(scores, i + 1, last);
    if (shape.dropout > 0) drop_row(dropout, i, scores, i + 1);
  }
  sgemm({Transpose::no, Transpose::no, last - first, d, last, 1, 0}, p, head.v,
        rows_from(head.out, first));
}

/// The last block comes first: it reaches all keys and so writes all of d_k and d_v, to which the
/// others add.
void backward_block(const AttentionShape& shape, const ScoreDropout& dropout,
                    const HeadPanels& head, std::int64_t first, std::int64_t last, const float* lse,
                    float* probs) {
  const std::int64_t d = shape.head_size;
  const std::int64_t rows = last - first;
  const float beta = last == shape.sequence ? 0 : 1;
  const Panel p{probs, last};
  const Panel d_s{probs + rows * last, last};
  const Panel q = rows_from(head.q, first);
  const Panel d_out = rows_from(head.d_out, first);
  const auto scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  sgemm({Transpose::no, Transpose::yes, rows, last, d, scale, 0}, q, head.k, p);
  sgemm({Transpose::no, Transpose::yes, rows, last, d, 1, 0}, d_out, head.v, d_s);
  for (std::int64_t i = first; i < last; ++i) {
    const RowGradient gradient{
        lse[i], dot(rows_from(head.d_out, i).data, rows_from(head.out, i).data, d), scale};
    float* const scores = probs + (i - first) * last;
    float* const d_probs = d_s.data + (i - first) * last;
    if (shape.dropout > 0) {
      gradient.apply_with_dropout(dropout, i, scores, d_probs, i + 1, last);
    } else {
      gradient.apply(scores, d_probs, i + 1, last);
    }
  }
  sgemm({Transpose::yes, Transpose::no, last, d, rows, 1, beta}, p, d_out, head.d_v);
  sgemm({Transpose::no, Transpose::no, rows, d, last, 1, 0}, d_s, head.k,
        rows_from(head.d_q, first));
  sgemm({Transpose::yes, Transpose::no, last, d, rows, 1, beta}, d_s, q, head.d_k);
}

}  // namespace

std::int64_t CpuDevice::attention_workspace(const AttentionShape& shape) const {
  return 2 * std::min(shape.sequence, kQueryBlock) * shape.sequence;
}

void CpuDevice::compute(const Attention& op) {
  const AttentionShape& shape = op.shape;
  assert(op.workspace.dtype == DType::fp32 && op.workspace.numel >= attention_workspace(shape));
  assert(op.qkv.rows == shape.batch * shape.sequence && op.out.rows == op.qkv.rows);
  assert(op.lse.numel == shape.batch * shape.heads * shape.sequence);
  float* const conversion = scratch(HeadPanels::scratch_elements(shape, op.qkv.dtype));
  for (std::int64_t index = 0; index < shape.batch * shape.heads; ++index) {
    const HeadPanels head = load_head(shape, index, op.qkv, op.out, conversion);
    const ScoreDropout dropout = dropout_of(shape, index);
    float* const head_lse = elements<float>(op.lse) + index * shape.sequence;
    for (std::int64_t first = 0; first < shape.sequence; first += kQueryBlock) {
      tick();
      forward_block(shape, dropout, head, first, std::min(first + kQueryBlock, shape.sequence),
                    head_lse, elements<float>(op.workspace));
    }
    store_out(shape, index, head, op.out);
  }
}

void CpuDevice::compute(const AttentionBackward& op) {
  const AttentionShape& shape = op.shape;
  assert(op.workspace.dtype == DType::fp32 && op.workspace.numel >= attention_workspace(shape));
  assert(op.d_out.rows == op.out.rows && op.d_qkv.rows == op.qkv.rows);
  assert(op.d_qkv.cols == op.qkv.cols);
  float* const conversion = scratch(HeadPanels::scratch_elements(shape, op.qkv.dtype));
  for (std::int64_t index = 0; index < shape.batch * shape.heads; ++index) {
    const HeadPanels head =
        load_head_for_backward(shape, index, op.qkv, op.out, op.d_out, op.d_qkv, conversion);
    const ScoreDropout dropout = dropout_of(shape, index);
    const float* const head_lse = elements<float>(op.lse) + index * shape.sequence;
    for (std::int64_t last = shape.sequence; last > 0;
         last = (last - 1) / kQueryBlock * kQueryBlock) {
      tick();
      backward_block(shape, dropout, head, (last - 1) / kQueryBlock * kQueryBlock, last, head_lse,
                     elements<float>(op.workspace));
    }
    store_gradients(shape, index, head, op.d_qkv);
  }
}

}  // namespace dstune::cpu
