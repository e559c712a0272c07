// O = softmax(Q K^T) V by tiles (Dao et al. 2022; Dao 2023): a warp goes with its queries through
// the keys once, while the next keys are on their way.
#include <cuda_runtime.h>

#include "dynamic_shared.cuh"
#include "kernels/cuda/attention/own.hpp"
#include "kernels/cuda/attention/tensor_forward_warp.cuh"
#include "kernels/cuda/attention/tensor_launch.hpp"
#include "kernels/cuda/base/launch.cuh"

namespace dstune::cuda {

namespace {

using namespace tensor;

// The last queries have the most keys, so they begin.
template <class T, int kHead>
__global__ void __launch_bounds__(128, 2) tensor_forward_kernel(ForwardOperands<T> op) {
  using Sizes = ForwardSizes<T, kHead>;
  using Tile = TensorTile<T, kHead>;
  DSTUNE_DYNAMIC_SHARED(unsigned char, shared);
  const HeadShape& shape = op.shape;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int rows = static_cast<int>(blockDim.x) / 32 * Sizes::kRows;
  T* const stages = reinterpret_cast<T*>(shared);
  const Tile q{stages + (Sizes::kKeepsQueries ? 1 : 2) * Sizes::kStage};
  const int heads = static_cast<int>(shape.count);
  const int head = static_cast<int>(blockIdx.x) % heads;
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) / heads * rows;
  const int own_first = first + warp * Sizes::kRows;
  const Sight<int> sight(shape, false);
  const int begin = sight.first(first) / Sizes::kKeys * Sizes::kKeys;
  const int end = sight.end(first + rows - 1);
  const T* const q_rows = rows_of_head(op.q, shape, head);
  const T* const k_rows = rows_of_head(op.k, shape, head / shape.served);
  const T* const v_rows = rows_of_head(op.v, shape, head / shape.served);
  const auto keys_of = [&](int stage) { return Tile{stages + stage * Sizes::kStage}; };
  const auto copy_keys = [&](int key, int stage) {
    const Tile keys = keys_of(stage);
    copy_tile(
        keys, Sizes::kKeys,
        TileSource<T>{k_rows + key * op.k.stride, op.k.stride, end - key, shape.size, op.packed});
    copy_tile(
        keys.rows_from(Sizes::kKeys), Sizes::kKeys,
        TileSource<T>{v_rows + key * op.v.stride, op.v.stride, end - key, shape.size, op.packed});
  };
  const ScoreDropout dropout(shape, head);
  ForwardRows<T, kHead> own(shape, own_first);
  copy_tile(q, rows,
            TileSource<T>{q_rows + first * op.q.stride, op.q.stride, shape.sequence - first,
                          shape.size, op.packed});
  copy_keys(begin, 0);
  wait_for_copies();
  __syncthreads();
  own.take_queries(q.rows_from(warp * Sizes::kRows));
  int stage = 0;
  for (int key = begin; key < end; key += Sizes::kKeys, stage ^= 1) {
    wait_for_copies();
    __syncthreads();
    if (key + Sizes::kKeys < end) copy_keys(key + Sizes::kKeys, stage ^ 1);
    const bool sees = sight.sees_any(own_first, Sizes::kRows, key, Sizes::kKeys);
    if (!sees || own_first >= shape.sequence) continue;
    own.attend(keys_of(stage), keys_of(stage).rows_from(Sizes::kKeys), key, sight, dropout);
  }
  own.finish(op, rows_of_head(op.out, shape, head), op.lse + head * shape.sequence);
}

template <class T, int kHead>
void forward(const ForwardOperands<T>& op, cudaStream_t stream) {
  using Sizes = ForwardSizes<T, kHead>;
  const HeadShape& shape = op.shape;
  const int warps =
      warps_of_block({shape.sequence, shape.count, Sizes::kRows, Sizes::kMostWarps}, &Sizes::bytes);
  const std::int64_t rows = warps * Sizes::kRows;
  const std::int64_t blocks = (shape.sequence + rows - 1) / rows * shape.count;
  constexpr auto kKernel = tensor_forward_kernel<T, kHead>;
  allow_shared_bytes(reinterpret_cast<const void*>(kKernel), Sizes::bytes(warps));
  launch(stream, {blocks, warps * 32, Sizes::bytes(warps)}, kKernel, op);
}

template <class T>
void forward(const Attention& op, cudaStream_t stream) {
  const auto operands = forward_operands<T>(op);
  if (op.shape.head_size <= 64) return forward<T, 64>(operands, stream);
  if (op.shape.head_size <= 96) return forward<T, 96>(operands, stream);
  forward<T, 128>(operands, stream);
}

}  // namespace

void tensor_attention(const Attention& op, cudaStream_t stream) {
  if (op.q.matrix.dtype == DType::bf16) return forward<__nv_bfloat16>(op, stream);
  forward<__half>(op, stream);
}

}  // namespace dstune::cuda
