// Gradients of attention by tiles as in own_backward.cu: two kernels, so that every sum has its
// order. The next other rows are on their way while a block works with the last.
#include <cuda_runtime.h>

#include "dynamic_shared.cuh"
#include "kernels/cuda/attention/own.hpp"
#include "kernels/cuda/attention/tensor_backward_warp.cuh"
#include "kernels/cuda/attention/tensor_launch.hpp"
#include "kernels/cuda/base/launch.cuh"

namespace dstune::cuda {

namespace {

using namespace tensor;

/// A block's shared memory: two stages of the others' rows and sums, the own rows.
template <class T, int kHead, bool kByKeys>
struct BackwardStages {
  using Sizes = BackwardSizes<T, kHead, kByKeys>;
  using Tile = TensorTile<T, kHead>;

  unsigned char* bytes;

  __device__ Tile first(int stage) const {
    return {reinterpret_cast<T*>(bytes) + 2 * stage * Sizes::kTileElements};
  }
  __device__ Tile second(int stage) const { return first(stage).rows_from(Sizes::kOthers); }
  __device__ Tile own() const { return first(2); }
  __device__ float* lse(int stage, int rows) const {
    return reinterpret_cast<float*>(own().rows_from(2 * rows).first) + 2 * stage * Sizes::kOthers;
  }
};

// The first keys have the most queries, the last queries the most keys: they begin.
template <class T, int kHead, bool kByKeys>
__global__ void __launch_bounds__(128, 2) tensor_backward_kernel(BackwardOperands<T> op) {
  using Sizes = BackwardSizes<T, kHead, kByKeys>;
  using Tile = TensorTile<T, kHead>;
  DSTUNE_DYNAMIC_SHARED(unsigned char, bytes);
  const BackwardStages<T, kHead, kByKeys> shared{bytes};
  const HeadShape& shape = op.shape;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int rows = static_cast<int>(blockDim.x) / 32 * Sizes::kRows;
  const int heads = static_cast<int>(kByKeys ? shape.kv_count : shape.count);
  const int own_head = static_cast<int>(blockIdx.x) % heads;
  const int first =
      static_cast<int>(kByKeys ? blockIdx.x : gridDim.x - 1 - blockIdx.x) / heads * rows;
  const int own_first = first + warp * Sizes::kRows;
  const int sequence = static_cast<int>(shape.sequence);
  const Sight<int> sight(shape, kByKeys);
  const int begin = sight.first(first) / Sizes::kOthers * Sizes::kOthers;
  const int end = sight.end(first + rows - 1);
  // Keys have the gradients of each head that they serve, queries of one.
  const int served = kByKeys ? static_cast<int>(shape.served) : 1;
  const auto copy = [&](const Tile& tile, const HeadRows<const T>& from, int head, int row,
                        int count) {
    copy_tile(tile, count,
              TileSource<T>{rows_of_head(from, shape, head) + row * from.stride, from.stride,
                            shape.sequence - row, shape.size, op.packed});
  };
  const auto copy_others = [&](int head, int other, int stage) {
    const int from = kByKeys ? head : head / static_cast<int>(shape.served);
    copy(shared.first(stage), op.other_q_or_k, from, other, Sizes::kOthers);
    copy(shared.second(stage), op.other_d_out_or_v, from, other, Sizes::kOthers);
    if (!kByKeys || threadIdx.x >= Sizes::kOthers) return;
    const int query = other + static_cast<int>(threadIdx.x);
    float* const to = shared.lse(stage, rows) + threadIdx.x;
    const std::int64_t sums = head * shape.sequence + query;
    copy_async<4>(to, op.lse + sums, query < sequence);
    copy_async<4>(to + Sizes::kOthers, op.d_dot_out + sums, query < sequence);
  };
  const int first_head = own_head * served;
  BackwardRows<T, kHead, kByKeys> own(shape, own_first);
  copy(shared.own(), op.own_k_or_q, own_head, first, rows);
  copy(shared.own().rows_from(rows), op.own_v_or_d_out, own_head, first, rows);
  copy_others(first_head, begin, 0);
  wait_for_copies();
  __syncthreads();
  const Tile own_rows = shared.own().rows_from(warp * Sizes::kRows);
  own.take(own_rows, own_rows.rows_from(rows), shape, op.lse + own_head * shape.sequence,
           op.d_dot_out + own_head * shape.sequence);
  int stage = 0;
  for (int head = first_head; head < first_head + served; ++head) {
    const ScoreDropout dropout(shape, head);
    for (int other = begin; other < end; other += Sizes::kOthers, stage ^= 1) {
      wait_for_copies();
      __syncthreads();
      if (other + Sizes::kOthers < end) {
        copy_others(head, other + Sizes::kOthers, stage ^ 1);
      } else if (head + 1 < first_head + served) {
        copy_others(head + 1, begin, stage ^ 1);
      }
      const bool sees = sight.sees_any(own_first, Sizes::kRows, other, Sizes::kOthers);
      if (!sees || own_first >= sequence) continue;
      const float* const sums = shared.lse(stage, rows);
      own.differentiate(shared.first(stage), shared.second(stage), other,
                        {sums, sums + Sizes::kOthers}, sight, dropout);
    }
  }
  own.finish(op, rows_of_head(op.d_k_or_q, shape, own_head),
             kByKeys ? rows_of_head(op.d_v, shape, own_head) : nullptr);
}

template <class T, int kHead, bool kByKeys>
void start(const BackwardOperands<T>& op, cudaStream_t stream) {
  using Sizes = BackwardSizes<T, kHead, kByKeys>;
  const HeadShape& shape = op.shape;
  const std::int64_t heads = kByKeys ? shape.kv_count : shape.count;
  const int warps =
      warps_of_block({shape.sequence, heads, Sizes::kRows, Sizes::kMostWarps}, &Sizes::bytes);
  const std::int64_t rows = warps * Sizes::kRows;
  const std::int64_t blocks = (shape.sequence + rows - 1) / rows * heads;
  constexpr auto kKernel = tensor_backward_kernel<T, kHead, kByKeys>;
  allow_shared_bytes(reinterpret_cast<const void*>(kKernel), Sizes::bytes(warps));
  launch(stream, {blocks, warps * 32, Sizes::bytes(warps)}, kKernel, op);
}

template <class T, int kHead>
void backward(const BackwardOperands<T>& by_keys, const BackwardOperands<T>& by_queries,
              cudaStream_t stream) {
  start<T, kHead, true>(by_keys, stream);
  start<T, kHead, false>(by_queries, stream);
}

template <class T>
void backward(const AttentionBackward& op, cudaStream_t stream) {
  const auto by_keys = backward_operands<T>(op, true);
  const auto by_queries = backward_operands<T>(op, false);
  if (op.shape.head_size <= 64) return backward<T, 64>(by_keys, by_queries, stream);
  if (op.shape.head_size <= 96) return backward<T, 96>(by_keys, by_queries, stream);
  backward<T, 128>(by_keys, by_queries, stream);
}

}  // namespace

void tensor_attention_backward(const AttentionBackward& op, cudaStream_t stream) {
  if (op.q.matrix.dtype == DType::bf16) return backward<__nv_bfloat16>(op, stream);
  backward<__half>(op, stream);
}

}  // namespace dstune::cuda
