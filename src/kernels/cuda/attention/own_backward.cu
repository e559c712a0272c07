// Gradients of attention by tiles (Dao 2023), the probabilities made again from the log-sum-exp.
// Two kernels, each a warp's 16 own rows against all others: keys against queries for d_k and d_v,
// queries against keys for d_q. So every sum has its order, which atomic additions would not have.
#include <cuda_runtime.h>

#include "dynamic_shared.cuh"
#include "kernels/cuda/attention/backward_warp.cuh"
#include "kernels/cuda/attention/own.hpp"
#include "kernels/cuda/base/launch.cuh"

namespace dstune::cuda {

namespace {

using namespace own_backward;

/// A block's shared memory.
template <class T, int kSize>
struct BackwardShared {
  using Tiles = BackwardTiles<T, kSize>;

  T* own_first;
  T* own_second;
  T* other_first;
  T* other_second;
  float* lse;
  float* d_dot_out;
  float* scores;

  __device__ BackwardShared(unsigned char* shared, int rows)
      : own_first(reinterpret_cast<T*>(shared)),
        own_second(own_first + rows * Tiles::kStride),
        other_first(own_second + rows * Tiles::kStride),
        other_second(other_first + Tiles::kOthers * Tiles::kStride),
        lse(reinterpret_cast<float*>(other_second + Tiles::kOthers * Tiles::kStride)),
        d_dot_out(lse + Tiles::kOthers),
        scores(d_dot_out + Tiles::kOthers) {}

  __device__ void load_queries(const float* from_lse, const float* from_dot,
                               std::int64_t count) const {
    for (int j = static_cast<int>(threadIdx.x); j < Tiles::kOthers;
         j += static_cast<int>(blockDim.x)) {
      lse[j] = j < count ? from_lse[j] : 0.0F;
      d_dot_out[j] = j < count ? from_dot[j] : 0.0F;
    }
  }
};

// The first keys have the most queries, the last queries the most keys: they begin.
template <class T, int kSize, bool kByKeys>
__global__ void __launch_bounds__(128) backward_kernel(BackwardOperands<T> op) {
  using Tiles = BackwardTiles<T, kSize>;
  constexpr int kStride = Tiles::kStride;
  DSTUNE_DYNAMIC_SHARED(unsigned char, bytes);
  const HeadShape& shape = op.shape;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int rows = static_cast<int>(blockDim.x) / 32 * kTile;
  const BackwardShared<T, kSize> shared(bytes, rows);
  const std::int64_t heads = kByKeys ? shape.kv_count : shape.count;
  const std::int64_t own_head = blockIdx.x % heads;
  const std::int64_t first = (kByKeys ? blockIdx.x : gridDim.x - 1 - blockIdx.x) / heads * rows;
  const std::int64_t own_first = first + warp * kTile;
  const Sight<> sight(shape, kByKeys);
  const std::int64_t begin = sight.first(first) / Tiles::kOthers * Tiles::kOthers;
  const std::int64_t end = sight.end(first + rows - 1);
  const int columns = (shape.size + kTile - 1) / kTile * kTile;
  const auto load = [&](T* tile, HeadRows<const T> from, std::int64_t head, std::int64_t from_row,
                        int count) {
    load_tile(tile, kStride, count, columns,
              TileSource<T>{rows_of_head(from, shape, head) + from_row * from.stride, from.stride,
                            shape.sequence - from_row, shape.size, op.packed});
  };
  float* const scores = shared.scores + 2 * warp * kTile * Tiles::kScoreStride;
  float* const d_probs = scores + kTile * Tiles::kScoreStride;
  BackwardWarp<T, kSize, kByKeys> own(shape, scores, d_probs, own_first);
  load(shared.own_first, op.own_k_or_q, own_head, first, rows);
  load(shared.own_second, op.own_v_or_d_out, own_head, first, rows);
  // Keys have the gradients of each head that they serve, queries of one.
  for (std::int64_t served = 0; served < (kByKeys ? shape.served : 1); ++served) {
    const std::int64_t head = kByKeys ? own_head * shape.served + served : own_head;
    const std::int64_t other_head = kByKeys ? head : head / shape.served;
    const float* const lse = op.lse + head * shape.sequence;
    const float* const d_dot_out = op.d_dot_out + head * shape.sequence;
    const ScoreDropout dropout(shape, head);
    for (std::int64_t other = begin; other < end; other += Tiles::kOthers) {
      __syncthreads();
      load(shared.other_first, op.other_q_or_k, other_head, other, Tiles::kOthers);
      load(shared.other_second, op.other_d_out_or_v, other_head, other, Tiles::kOthers);
      if (kByKeys) shared.load_queries(lse + other, d_dot_out + other, shape.sequence - other);
      __syncthreads();
      const bool sees = sight.sees_any(own_first, kTile, other, Tiles::kOthers);
      if (!sees || own_first >= shape.sequence) continue;
      own.multiply_rows(shared.own_first + warp * kTile * kStride, shared.other_first, scores);
      own.multiply_rows(shared.own_second + warp * kTile * kStride, shared.other_second, d_probs);
      own.differentiate(shape, sight, dropout, other, kByKeys ? shared.lse : lse,
                        kByKeys ? shared.d_dot_out : d_dot_out);
      own.accumulate(shared.other_first, shared.other_second);
    }
  }
  own.finish(op, rows_of_head(op.d_k_or_q, shape, own_head),
             kByKeys ? rows_of_head(op.d_v, shape, own_head) : nullptr);
}

template <class T, int kSize, bool kByKeys>
void start(const BackwardOperands<T>& op, cudaStream_t stream) {
  using Tiles = BackwardTiles<T, kSize>;
  static_assert(Tiles::bytes(Tiles::kMostWarps) <= kSharedBytes);
  const int warps = warps_for(op.shape.sequence, Tiles::kMostWarps);
  const std::int64_t rows = warps * kTile;
  const std::int64_t heads = kByKeys ? op.shape.kv_count : op.shape.count;
  const std::int64_t blocks = (op.shape.sequence + rows - 1) / rows * heads;
  launch(stream, {blocks, warps * 32, Tiles::bytes(warps)}, backward_kernel<T, kSize, kByKeys>, op);
}

template <class T>
void backward(const AttentionBackward& op, cudaStream_t stream) {
  const auto by_keys = backward_operands<T>(op, true);
  const auto by_queries = backward_operands<T>(op, false);
  if (op.shape.head_size <= 64) {
    start<T, 64, true>(by_keys, stream);
    start<T, 64, false>(by_queries, stream);
  } else {
    start<T, 128, true>(by_keys, stream);
    start<T, 128, false>(by_queries, stream);
  }
}

}  // namespace

std::int64_t own_attention_workspace(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.sequence;
}

void own_attention_backward(const AttentionBackward& op, cudaStream_t stream) {
  if (op.out.rows == 0) return;
  multiply_by_gradients(op, stream);
  if (!is_tiled(op.shape, op.out.dtype)) return plain_attention_backward(op, stream);
  if (is_tensor_attention(op.out.dtype)) return tensor_attention_backward(op, stream);
  if (op.out.dtype == DType::fp16) return backward<__half>(op, stream);
  backward<float>(op, stream);
}

}  // namespace dstune::cuda
