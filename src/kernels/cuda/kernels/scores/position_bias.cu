#include <cassert>

#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/scores.hpp"

namespace dstune::cuda {

namespace {

struct Bucket {
  std::int64_t keys;
  PositionBucket<DeviceMath> buckets;

  __device__ void operator()(std::int64_t index, std::int64_t& bucket) const {
    const std::int64_t query = quotient(index, keys);
    bucket = buckets.of(index - query * keys - query);
  }
};

template <class T>
struct Stacked {
  const T* bias;
  ScoreShape shape;
  bool causal;
  float lowest;

  __device__ void operator()(std::int64_t index, float& out) const {
    const std::int64_t row = quotient(index, shape.keys);
    const std::int64_t head = quotient(row, shape.queries);
    const std::int64_t query = row - head * shape.queries;
    const std::int64_t key = index - row * shape.keys;
    out = causal && key > query ? lowest
                                : to_float(bias[(query * shape.keys + key) * shape.heads + head]);
  }
};

template <class T>
struct PlusBias {
  const T* bias;
  std::int64_t square;
  std::int64_t heads;
  bool stacked;

  __device__ void operator()(std::int64_t index, float score, float& out) const {
    const std::int64_t all = quotient(index, square);
    const std::int64_t head = all - quotient(all, heads) * heads;
    const std::int64_t at = index - all * square;
    out = score + to_float(bias[stacked ? head * square + at : at * heads + head]);
  }
};

template <class T>
struct OverBatch {
  const T* d_scores;
  std::int64_t batch;
  std::int64_t square;
  std::int64_t heads;
  bool adds;

  __device__ void operator()(std::int64_t index, float& d_bias) const {
    const std::int64_t at = quotient(index, heads);
    const T* const first = d_scores + (index - at * heads) * square + at;
    float sum = 0;
    for (std::int64_t b = 0; b < batch; ++b) sum += to_float(first[b * heads * square]);
    sum = to_float(from_float<T>(sum));
    d_bias = adds ? d_bias + sum : sum;
  }
};

}  // namespace

void CudaDevice::compute(const PositionBuckets& op) {
  assert(op.out.dtype == DType::int64 && op.out.numel == op.queries * op.keys);
  for_each_element(stream(), op.out.numel, Bucket{op.keys, PositionBucket<DeviceMath>(op)},
                   Out<std::int64_t>{elements<std::int64_t>(op.out)});
}

void CudaDevice::compute(const StackBias& op) {
  assert(op.bias.numel == op.shape.of_one() && op.out.numel == op.shape.of_one());
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const Stacked<T> stack{elements<T>(op.bias), op.shape, op.causal, lowest_of(op.out.dtype)};
    for_each_element(stream(), op.out.numel, stack, Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const AddScoreBias& op) {
  assert(op.scores.numel == op.shape.count() && op.out.numel == op.shape.count());
  assert(op.bias.numel == op.shape.of_one());
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const PlusBias<T> plus{elements<T>(op.bias), op.shape.square(), op.shape.heads, op.stacked};
    for_each_element(stream(), op.out.numel, plus, In<T>{elements<T>(op.scores)},
                     Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const ScoreBiasGradient& op) {
  assert(op.d_scores.numel == op.shape.count() && op.d_bias.numel == op.shape.of_one());
  with_type(op.d_bias.dtype, [&]<class T>(std::type_identity<T>) {
    const OverBatch<T> sum{elements<T>(op.d_scores), op.shape.batch, op.shape.square(),
                           op.shape.heads, op.adds};
    if (op.adds) {
      for_each_element(stream(), op.d_bias.numel, sum, InOut<T>{elements<T>(op.d_bias)});
    } else {
      for_each_element(stream(), op.d_bias.numel, sum, Out<T>{elements<T>(op.d_bias)});
    }
  });
}

}  // namespace dstune::cuda
