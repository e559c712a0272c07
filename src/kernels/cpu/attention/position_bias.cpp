#include <algorithm>
#include <cassert>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/elements.hpp"
#include "kernels/cpu/vector_math.hpp"
#include "kernels/scores.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const PositionBuckets& op) {
  assert(op.out.dtype == DType::int64 && op.out.numel == op.queries * op.keys);
  auto* const out = elements<std::int64_t>(op.out);
  const PositionBucket<VectorMath> bucket(op);
  for_rows(*this, op.queries, op.keys, [=](std::int64_t i) {
    for (std::int64_t j = 0; j < op.keys; ++j) out[i * op.keys + j] = bucket.of(j - i);
  });
}

void CpuDevice::compute(const StackBias& op) {
  const ScoreShape shape = op.shape;
  assert(op.bias.numel == shape.of_one() && op.out.numel == shape.of_one());
  const float lowest = lowest_of(op.out.dtype);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const bias = elements<T>(op.bias);
    T* const out = elements<T>(op.out);
    for_rows(*this, shape.heads * shape.queries, shape.keys,
             [=, causal = op.causal](std::int64_t row) {
               const std::int64_t head = row / shape.queries;
               const std::int64_t i = row % shape.queries;
               for (std::int64_t j = 0; j < shape.keys; ++j) {
                 out[row * shape.keys + j] = causal && j > i
                                                 ? from_float<T>(lowest)
                                                 : bias[(i * shape.keys + j) * shape.heads + head];
               }
             });
  });
}

void CpuDevice::compute(const AddScoreBias& op) {
  const ScoreShape shape = op.shape;
  assert(op.scores.numel == shape.count() && op.out.numel == shape.count());
  assert(op.bias.numel == shape.of_one());
  const std::int64_t step = op.stacked ? 1 : shape.heads;
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const scores = elements<T>(op.scores);
    T* const out = elements<T>(op.out);
    for_rows(*this, shape.batch * shape.heads, shape.square(),
             [=, stacked = op.stacked, all = elements<T>(op.bias)](std::int64_t head) {
               const std::int64_t own = head % shape.heads;
               const T* const bias = all + (stacked ? own * shape.square() : own);
               const std::int64_t first = head * shape.square();
               for (std::int64_t at = 0; at < shape.square(); ++at) {
                 out[first + at] =
                     from_float<T>(to_float(scores[first + at]) + to_float(bias[at * step]));
               }
             });
  });
}

void CpuDevice::compute(const ScoreBiasGradient& op) {
  const ScoreShape shape = op.shape;
  assert(op.d_scores.numel == shape.count() && op.d_bias.numel == shape.of_one());
  with_type(op.d_bias.dtype, [&]<class T>(std::type_identity<T>) {
    const T* const d_scores = elements<T>(op.d_scores);
    T* const d_bias = elements<T>(op.d_bias);
    for_rows(*this, shape.square(), shape.heads * shape.batch,
             [=, adds = op.adds](std::int64_t at) {
               for (std::int64_t head = 0; head < shape.heads; ++head) {
                 T& sum = d_bias[at * shape.heads + head];
                 float total = 0;
                 for (std::int64_t b = 0; b < shape.batch; ++b) {
                   total += to_float(d_scores[(b * shape.heads + head) * shape.square() + at]);
                 }
                 const float rounded = to_float(from_float<T>(total));
                 sum = from_float<T>(adds ? to_float(sum) + rounded : rounded);
               }
             });
  });
}

}  // namespace dstune::cpu
