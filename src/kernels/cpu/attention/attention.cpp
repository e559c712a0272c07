// P = softmax(scale Q K^T), O = P V, by blocks of queries (Dao et al. 2022): only the log-sum-exp
// of each row is kept, backward makes P again from it.
#include "core/device/operations/attention.hpp"

#include <algorithm>
#include <cassert>

#include "core/device/host_overhead.hpp"
#include "kernels/cpu/attention/attention_head.hpp"
#include "kernels/cpu/attention/attention_rows.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"

namespace dstune::cpu {

namespace {

constexpr std::int64_t kQueryBlock = 128;

float dot(const float* x, const float* y, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < count; ++j) sum += x[j] * y[j];
  return sum;
}

/// Queries [first, last) of a head.
struct Block {
  const Products& products;
  const AttentionShape& shape;
  const ScoreDropout& dropout;
  const HeadPanels& head;
  std::int64_t first;
  std::int64_t last;
  Keys keys = keys_of(shape, first, last);
  std::int64_t rows = last - first;

  float scale() const { return static_cast<float>(shape.score_scale()); }
  float softcap() const { return static_cast<float>(shape.softcap); }
  Panel k() const { return rows_from(head.k, keys.first); }
  Panel v() const { return rows_from(head.v, keys.first); }
  ScoreRow row(std::int64_t i, const Panel& scores) const {
    return {shape, i, keys, rows_from(scores, i - first).data};
  }

  /// scores = cap(scale Q K^T)
  void multiply(Panel scores) const {
    products.sgemm({Transpose::no, Transpose::yes, rows, keys.count(), shape.head_size, scale(), 0},
                   rows_from(head.q, first), k(), scores);
    if (shape.softcap == 0) return;
    for (std::int64_t i = first; i < last; ++i) cap_row(row(i, scores), softcap());
  }
};

void forward_block(const Block& block, float* lse, float* probs) {
  const Panel p{probs, block.keys.count()};
  block.multiply(p);
  for (std::int64_t i = block.first; i < block.last; ++i) {
    const ScoreRow row = block.row(i, p);
    lse[i] = softmax_row(row);
    if (block.shape.dropout > 0) drop_row(block.dropout, row);
  }
  block.products.sgemm(
      {Transpose::no, Transpose::no, block.rows, block.shape.head_size, p.stride, 1, 0}, p,
      block.v(), rows_from(block.head.out, block.first));
}

/// @param beta  of d_k and d_v, to which the block adds: 0 if nothing is in them yet
void backward_block(const Block& block, const float* lse, float* probs, float beta) {
  const HeadPanels& head = block.head;
  const std::int64_t d = block.shape.head_size;
  const std::int64_t keys = block.keys.count();
  const Panel p{probs, keys};
  const Panel d_s{probs + block.rows * keys, keys};
  const Panel d_out = rows_from(head.d_out, block.first);
  block.multiply(p);
  block.products.sgemm({Transpose::no, Transpose::yes, block.rows, keys, d, 1, 0}, d_out, block.v(),
                       d_s);
  for (std::int64_t i = block.first; i < block.last; ++i) {
    const RowGradient gradient{lse[i],
                               dot(rows_from(head.d_out, i).data, rows_from(head.out, i).data, d),
                               block.scale(), block.softcap()};
    gradient.apply(block.row(i, p), rows_from(d_s, i - block.first).data,
                   block.shape.dropout > 0 ? &block.dropout : nullptr);
  }
  block.products.sgemm({Transpose::yes, Transpose::no, keys, d, block.rows, 1, beta}, p, d_out,
                       rows_from(head.d_v, block.keys.first));
  block.products.sgemm({Transpose::no, Transpose::no, block.rows, d, keys, 1, 0}, d_s, block.k(),
                       rows_from(head.d_q, block.first));
  block.products.sgemm({Transpose::yes, Transpose::no, keys, d, block.rows, 1, beta}, d_s,
                       rows_from(head.q, block.first), rows_from(head.d_k, block.keys.first));
}

void clear(Panel panel, const AttentionShape& shape) {
  for (std::int64_t i = 0; i < shape.sequence; ++i) {
    std::fill_n(rows_from(panel, i).data, shape.head_size, 0.0F);
  }
}

/// True if d_k and d_v hold something when the last block of head `index` comes, which is the first
/// of its blocks: what other heads gave, or, where that block does not reach all keys, zeros.
bool begins_with_sums(const AttentionShape& shape, std::int64_t index, const HeadPanels& head) {
  if (index % (shape.heads / shape.kv_heads) != 0) return true;
  if (shape.window == 0) return false;
  clear(head.d_k, shape);
  clear(head.d_v, shape);
  return true;
}

void check(const AttentionShape& shape, const Heads& q, const Heads& k, const Matrix& out) {
  assert(shape.heads % shape.kv_heads == 0);
  assert(q.matrix.rows == shape.rows() && k.matrix.rows == shape.rows());
  assert(out.rows == shape.rows() && out.cols == shape.heads * shape.head_size);
  assert(q.stride >= shape.head_size && k.stride >= shape.head_size);
  (void)shape, (void)q, (void)k, (void)out;
}

Seconds seconds_of(const AttentionTime& time, const AttentionShape& shape, double flops) {
  return static_cast<double>(shape.rows() * shape.heads) * time.row + flops / time.flops_per_s;
}

}  // namespace

std::int64_t CpuDevice::attention_workspace(const AttentionShape& shape) const {
  return 2 * std::min(shape.sequence, kQueryBlock) * shape.sequence;
}

// Where the training's library is slower, the step waits until its time has passed, as behind
// products.
void CpuDevice::compute(const Attention& op) {
  const Seconds begin = now();
  attend(op);
  if (const auto* rate = attention_rate(host_overhead(), op.out.dtype, products_.threads(),
                                        op.shape.dropout > 0)) {
    wait_until(begin + seconds_of(rate->forward, op.shape, work_of(op).flops));
  }
}

void CpuDevice::compute(const AttentionBackward& op) {
  const Seconds begin = now();
  attend_back(op);
  if (const auto* rate = attention_rate(host_overhead(), op.out.dtype, products_.threads(),
                                        op.shape.dropout > 0)) {
    wait_until(begin + seconds_of(rate->backward, op.shape, work_of(op).flops));
  }
}

void CpuDevice::attend(const Attention& op) {
  const AttentionShape& shape = op.shape;
  check(shape, op.q, op.k, op.out);
  assert(op.workspace.dtype == DType::fp32 && op.workspace.numel >= attention_workspace(shape));
  assert(op.lse.numel == shape.batch * shape.heads * shape.sequence);
  float* const conversion = scratch(HeadPanels::scratch_elements(shape, op.out.dtype));
  for (std::int64_t index = 0; index < shape.batch * shape.heads; ++index) {
    const HeadPanels head = load_head(op, index, conversion);
    const ScoreDropout dropout(shape, index);
    float* const head_lse = elements<float>(op.lse) + index * shape.sequence;
    for (std::int64_t first = 0; first < shape.sequence; first += kQueryBlock) {
      tick();
      forward_block(
          {products_, shape, dropout, head, first, std::min(first + kQueryBlock, shape.sequence)},
          head_lse, elements<float>(op.workspace));
    }
    store_out(op, index, head);
  }
}

void CpuDevice::attend_back(const AttentionBackward& op) {
  const AttentionShape& shape = op.shape;
  check(shape, op.q, op.k, op.out);
  assert(op.workspace.dtype == DType::fp32 && op.workspace.numel >= attention_workspace(shape));
  assert(op.d_out.rows == op.out.rows && op.d_q.matrix.rows == shape.rows());
  assert(op.d_k.matrix.rows == shape.rows() && op.d_v.matrix.rows == shape.rows());
  float* const conversion = scratch(HeadPanels::scratch_elements(shape, op.out.dtype));
  const std::int64_t served = shape.heads / shape.kv_heads;
  for (std::int64_t index = 0; index < shape.batch * shape.heads; ++index) {
    const HeadPanels head = load_head(op, index, conversion);
    const ScoreDropout dropout(shape, index);
    const float* const head_lse = elements<float>(op.lse) + index * shape.sequence;
    const bool adds = begins_with_sums(shape, index, head);
    for (std::int64_t last = shape.sequence; last > 0;
         last = (last - 1) / kQueryBlock * kQueryBlock) {
      tick();
      backward_block(
          {products_, shape, dropout, head, (last - 1) / kQueryBlock * kQueryBlock, last}, head_lse,
          elements<float>(op.workspace), adds || last < shape.sequence ? 1 : 0);
    }
    store_d_q(op, index, head);
    if ((index + 1) % served == 0) store_d_k_and_d_v(op, index, head);
  }
}

}  // namespace dstune::cpu
