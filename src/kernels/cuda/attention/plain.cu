// One warp per row: queries for the output and d_q, keys for d_k and d_v. It goes through what the
// row sees once for every 256 columns of the result, and makes the scores again each time.
#include <algorithm>
#include <cmath>

#include <cuda_runtime.h>

#include "kernels/cuda/attention/heads.cuh"
#include "kernels/cuda/attention/own.hpp"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/kernels/elements.cuh"
#include "kernels/cuda/kernels/reductions.cuh"

namespace dstune::cuda {

namespace {

constexpr int kSums = 8;  // of a lane
constexpr int kColumns = kSums * kWarp;
constexpr int kThreads = 256;

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }

/// The row of all heads that this warp is for.
__device__ inline std::int64_t row_of_warp() {
  return (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kWarp;
}

template <class T>
__device__ inline float dot(const T* a, const T* b, int size) {
  float sum = 0;
  for (int j = lane(); j < size; j += kWarp) sum += to_float(a[j]) * to_float(b[j]);
  return sum_of_warp(sum);
}

/// Sums of kColumns columns of a row, spread over the warp.
struct RowSums {
  float values[kSums] = {};

  template <class T>
  __device__ void add(float factor, const T* row, int count) {
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      const int column = k * kWarp + lane();
      if (column < count) values[k] += factor * to_float(row[column]);
    }
  }
  template <class T>
  __device__ void store(T* row, int count) const {
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      const int column = k * kWarp + lane();
      if (column < count) row[column] = from_float<T>(values[k]);
    }
  }
};

template <class T>
struct Plain {
  HeadShape shape;
  HeadRows<const T> q;
  HeadRows<const T> k;
  HeadRows<const T> v;
  HeadRows<const T> d_out;
  float* lse;
  const float* d_dot_out;

  __device__ float score(std::int64_t head, std::int64_t query, std::int64_t key) const {
    const float score =
        shape.scale * dot(rows_of_head(q, shape, head) + query * q.stride,
                          rows_of_head(k, shape, head / shape.served) + key * k.stride, shape.size);
    return shape.softcap == 0 ? score : shape.softcap * tanhf(score / shape.softcap);
  }
  /// The derivative of the score by what it was before the cap.
  __device__ float slope(float score) const {
    return shape.softcap == 0 ? 1.0F : 1.0F - score / shape.softcap * (score / shape.softcap);
  }
};

template <class T>
__global__ void plain_lse_kernel(Plain<T> op) {
  const std::int64_t row = row_of_warp();
  const std::int64_t head = row / op.shape.sequence;
  if (head >= op.shape.count) return;
  const std::int64_t query = row % op.shape.sequence;
  float largest = -INFINITY;
  float sum = 0;
  const Sight<> sight(op.shape, false);
  for (std::int64_t key = sight.first(query); key < sight.end(query); ++key) {
    const float score = op.score(head, query, key);
    const float before = largest;
    largest = fmaxf(largest, score);
    sum = sum * expf(before - largest) + expf(score - largest);
  }
  if (lane() == 0) op.lse[row] = largest + logf(sum);
}

template <class T>
__global__ void plain_forward_kernel(Plain<T> op, HeadRows<T> out) {
  const std::int64_t row = row_of_warp();
  const std::int64_t head = row / op.shape.sequence;
  if (head >= op.shape.count) return;
  const std::int64_t query = row % op.shape.sequence;
  const ScoreDropout dropout(op.shape, head);
  const Sight<> sight(op.shape, false);
  for (int first = 0; first < op.shape.size; first += kColumns) {
    RowSums sums;
    for (std::int64_t key = sight.first(query); key < sight.end(query); ++key) {
      const float p = expf(op.score(head, query, key) - op.lse[row]);
      sums.add(p * dropout.multiplier(query, key),
               rows_of_head(op.v, op.shape, head / op.shape.served) + key * op.v.stride + first,
               op.shape.size - first);
    }
    sums.store(rows_of_head(out, op.shape, head) + query * out.stride + first,
               op.shape.size - first);
  }
}

/// The dropped probability and the gradient of one score.
struct ScoreGradient {
  float p;
  float d;

  template <class T>
  __device__ ScoreGradient(const Plain<T>& op, std::int64_t head, std::int64_t query,
                           std::int64_t key) {
    const std::int64_t row = head * op.shape.sequence + query;
    const float score = op.score(head, query, key);
    const float probability = expf(score - op.lse[row]);
    const float multiplier = ScoreDropout(op.shape, head).multiplier(query, key);
    const float d_p = dot(rows_of_head(op.d_out, op.shape, head) + query * op.d_out.stride,
                          rows_of_head(op.v, op.shape, head / op.shape.served) + key * op.v.stride,
                          op.shape.size);
    p = probability * multiplier;
    d = probability * (d_p * multiplier - op.d_dot_out[row]) * op.shape.scale * op.slope(score);
  }
};

template <class T>
__global__ void plain_d_q_kernel(Plain<T> op, HeadRows<T> d_q) {
  const std::int64_t row = row_of_warp();
  const std::int64_t head = row / op.shape.sequence;
  if (head >= op.shape.count) return;
  const std::int64_t query = row % op.shape.sequence;
  const Sight<> sight(op.shape, false);
  for (int first = 0; first < op.shape.size; first += kColumns) {
    RowSums sums;
    for (std::int64_t key = sight.first(query); key < sight.end(query); ++key) {
      sums.add(ScoreGradient(op, head, query, key).d,
               rows_of_head(op.k, op.shape, head / op.shape.served) + key * op.k.stride + first,
               op.shape.size - first);
    }
    sums.store(rows_of_head(d_q, op.shape, head) + query * d_q.stride + first,
               op.shape.size - first);
  }
}

template <class T>
__global__ void plain_d_kv_kernel(Plain<T> op, HeadRows<T> d_k, HeadRows<T> d_v) {
  const HeadShape& shape = op.shape;
  const std::int64_t row = row_of_warp();
  const std::int64_t kv_head = row / shape.sequence;
  if (kv_head >= shape.kv_count) return;
  const std::int64_t key = row % shape.sequence;
  const Sight<> sight(shape, true);
  for (int first = 0; first < shape.size; first += kColumns) {
    const int count = shape.size - first;
    RowSums k_sums;
    RowSums v_sums;
    for (std::int64_t served = 0; served < shape.served; ++served) {
      const std::int64_t head = kv_head * shape.served + served;
      for (std::int64_t query = sight.first(key); query < sight.end(key); ++query) {
        const ScoreGradient gradient(op, head, query, key);
        k_sums.add(gradient.d, rows_of_head(op.q, shape, head) + query * op.q.stride + first,
                   count);
        v_sums.add(gradient.p,
                   rows_of_head(op.d_out, shape, head) + query * op.d_out.stride + first, count);
      }
    }
    k_sums.store(rows_of_head(d_k, shape, kv_head) + key * d_k.stride + first, count);
    v_sums.store(rows_of_head(d_v, shape, kv_head) + key * d_v.stride + first, count);
  }
}

template <class T>
__global__ void d_dot_out_kernel(HeadShape shape, HeadRows<const T> d_out, HeadRows<const T> out,
                                 float* result) {
  const std::int64_t row = row_of_warp();
  const std::int64_t head = row / shape.sequence;
  if (head >= shape.count) return;
  const std::int64_t query = row % shape.sequence;
  const float sum = dot(rows_of_head(d_out, shape, head) + query * d_out.stride,
                        rows_of_head(out, shape, head) + query * out.stride, shape.size);
  if (lane() == 0) result[row] = sum;
}

/// @param heads  of a sequence
Grid warp_per_row(const AttentionShape& shape, std::int64_t heads) {
  const std::int64_t rows = shape.batch * heads * shape.sequence;
  const auto threads = static_cast<int>(std::min<std::int64_t>(rows * kWarp, kThreads));
  return cover(rows * kWarp, threads);
}

template <class T, class Operation>
Plain<T> inputs_of(const Operation& op) {
  return {.shape = head_shape_of(op.shape),
          .q = head_rows<const T>(op.q, op.shape.heads),
          .k = head_rows<const T>(op.k, op.shape.kv_heads),
          .v = head_rows<const T>(op.v, op.shape.kv_heads),
          .d_out = {},
          .lse = elements<float>(op.lse),
          .d_dot_out = nullptr};
}

}  // namespace

void multiply_by_gradients(const AttentionBackward& op, cudaStream_t stream) {
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    launch(stream, warp_per_row(op.shape, op.shape.heads), d_dot_out_kernel<T>,
           head_shape_of(op.shape), head_rows<const T>(op.d_out, op.shape),
           head_rows<const T>(op.out, op.shape), elements<float>(op.workspace));
  });
}

void plain_attention(const Attention& op, cudaStream_t stream) {
  const Grid grid = warp_per_row(op.shape, op.shape.heads);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const auto plain = inputs_of<T>(op);
    launch(stream, grid, plain_lse_kernel<T>, plain);
    launch(stream, grid, plain_forward_kernel<T>, plain, head_rows<T>(op.out, op.shape));
  });
}

void plain_attention_backward(const AttentionBackward& op, cudaStream_t stream) {
  const AttentionShape& shape = op.shape;
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    auto plain = inputs_of<T>(op);
    plain.d_out = head_rows<const T>(op.d_out, shape);
    plain.d_dot_out = elements<float>(op.workspace);
    launch(stream, warp_per_row(shape, shape.heads), plain_d_q_kernel<T>, plain,
           head_rows<T>(op.d_q, shape.heads));
    launch(stream, warp_per_row(shape, shape.kv_heads), plain_d_kv_kernel<T>, plain,
           head_rows<T>(op.d_k, shape.kv_heads), head_rows<T>(op.d_v, shape.kv_heads));
  });
}

}  // namespace dstune::cuda
