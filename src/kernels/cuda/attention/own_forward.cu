// O = softmax(Q K^T) V by tiles (Dao et al. 2022): a warp has 16 queries and goes through the keys
// once. How far a row's sums were scaled down changes only when a score is much larger than before
// (by 2^kSlack), since the sums of tensor cores can be scaled in shared memory only.
#include <cuda_runtime.h>

#include "dynamic_shared.cuh"
#include "kernels/cuda/attention/forward_warp.cuh"
#include "kernels/cuda/attention/own.hpp"
#include "kernels/cuda/base/launch.cuh"

namespace dstune::cuda {

namespace {

using namespace own_forward;

// The last queries have the most keys, so they begin.
template <class T, int kSize>
__global__ void __launch_bounds__(128) forward_kernel(ForwardOperands<T> op) {
  using Tiles = ForwardTiles<T, kSize>;
  DSTUNE_DYNAMIC_SHARED(unsigned char, shared);
  const HeadShape& shape = op.shape;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int rows = static_cast<int>(blockDim.x) / 32 * kTile;
  T* const q = reinterpret_cast<T*>(shared);
  T* const k = q + rows * Tiles::kStride;
  T* const v = k + Tiles::kKeys * Tiles::kStride;
  float* const scores = reinterpret_cast<float*>(v + Tiles::kKeys * Tiles::kStride) +
                        warp * kTile * Tiles::kScoreStride;
  const std::int64_t head = blockIdx.x % shape.count;
  const std::int64_t first = (gridDim.x - 1 - blockIdx.x) / shape.count * rows;
  const std::int64_t own_first = first + warp * kTile;
  const Sight<> sight(shape, false);
  const std::int64_t begin = sight.first(first) / Tiles::kKeys * Tiles::kKeys;
  const std::int64_t end = sight.end(first + rows - 1);
  const int columns = (shape.size + kTile - 1) / kTile * kTile;
  const T* const q_rows = rows_of_head(op.q, shape, head);
  const T* const k_rows = rows_of_head(op.k, shape, head / shape.served);
  const T* const v_rows = rows_of_head(op.v, shape, head / shape.served);
  const ScoreDropout dropout(shape, head);
  ForwardWarp<T, kSize> own(shape, scores, own_first);
  load_tile(
      q, Tiles::kStride, rows, columns,
      {q_rows + first * op.q.stride, op.q.stride, shape.sequence - first, shape.size, op.packed});
  for (std::int64_t key = begin; key < end; key += Tiles::kKeys) {
    __syncthreads();
    const std::int64_t left = end - key;
    load_tile(k, Tiles::kStride, Tiles::kKeys, columns,
              {k_rows + key * op.k.stride, op.k.stride, left, shape.size, op.packed});
    load_tile(v, Tiles::kStride, Tiles::kKeys, columns,
              {v_rows + key * op.v.stride, op.v.stride, left, shape.size, op.packed});
    __syncthreads();
    const std::int64_t visible = own_first + kTile + shape.ahead - key;
    const int tiles =
        static_cast<int>(min((visible + kTile - 1) / kTile, std::int64_t{Tiles::kKeys / kTile}));
    if (!sight.sees_any(own_first, kTile, key, Tiles::kKeys)) continue;
    own.multiply_keys(q + warp * kTile * Tiles::kStride, k, tiles);
    own.apply_softmax(shape, sight, dropout, key);
    own.multiply_values(v, tiles);
  }
  own.finish(op, rows_of_head(op.out, shape, head), op.lse + head * shape.sequence);
}

template <class T, int kSize>
void forward(const ForwardOperands<T>& op, cudaStream_t stream) {
  using Tiles = ForwardTiles<T, kSize>;
  static_assert(Tiles::bytes(Tiles::kMostWarps) <= kSharedBytes);
  const int warps = warps_for(op.shape.sequence, Tiles::kMostWarps);
  const std::int64_t rows = warps * kTile;
  const std::int64_t blocks = (op.shape.sequence + rows - 1) / rows * op.shape.count;
  launch(stream, {blocks, warps * 32, Tiles::bytes(warps)}, forward_kernel<T, kSize>, op);
}

template <class T>
void forward(const Attention& op, cudaStream_t stream) {
  const auto operands = forward_operands<T>(op);
  if (op.shape.head_size <= 64) return forward<T, 64>(operands, stream);
  forward<T, 128>(operands, stream);
}

}  // namespace

void own_attention(const Attention& op, cudaStream_t stream) {
  if (op.out.rows == 0) return;
  if (!is_tiled(op.shape, op.out.dtype)) return plain_attention(op, stream);
  if (is_tensor_attention(op.out.dtype)) return tensor_attention(op, stream);
  if (op.out.dtype == DType::fp16) return forward<__half>(op, stream);
  forward<float>(op, stream);
}

}  // namespace dstune::cuda
