#include <cassert>

#include "core/device/operations/norms.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

// As PyTorch's kernel (vectorized_layer_norm_kernel in ATen/native/cuda/layer_norm_kernel.cu): a
// block of four warps for a row of any length, four columns at a time, its moments by Welford's
// updates, and the row read a second time.
constexpr int kThreads = 128;
constexpr int kColumns = 4;
[[maybe_unused]] constexpr int kMostColumns = 1 << 24;  // that fp32 counts one by one

template <class T>
struct Forward {
  RowsOf<const T> x;
  const T* gamma;
  const T* beta;
  float epsilon;
  float* mean;
  float* rstd;
  RowsOf<T> out;
  unsigned cols;
};

/// Of some of a row's elements.
struct Moments {
  float mean = 0;
  float squares = 0;  ///< of the differences from the mean, their sum
  float count = 0;
};

__device__ inline Moments with(const Moments& some, float x) {
  const float delta = x - some.mean;
  const float count = some.count + 1;
  const float mean = some.mean + delta * (1.0F / count);
  return {mean, some.squares + delta * (x - mean), count};
}

/// Chan et al. 1979.
__device__ inline Moments joined(const Moments& a, const Moments& b) {
  const float count = a.count + b.count;
  if (count == 0) return {};
  const float share = b.count * (1.0F / count);
  const float delta = b.mean - a.mean;
  return {a.mean + delta * share, a.squares + b.squares + delta * delta * a.count * share, count};
}

/// Of all threads of a block, the same in each.
__device__ inline Moments joined_in_block(Moments own) {
  __shared__ Moments of_warps[kThreads / kWarp];
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    own = joined(own, {__shfl_xor_sync(0xffffffffU, own.mean, distance),
                       __shfl_xor_sync(0xffffffffU, own.squares, distance),
                       __shfl_xor_sync(0xffffffffU, own.count, distance)});
  }
  if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = own;
  __syncthreads();
  Moments all = of_warps[0];
#pragma unroll
  for (int warp = 1; warp < kThreads / kWarp; ++warp) all = joined(all, of_warps[warp]);
  return all;
}

// The loops are not unrolled, as PyTorch's are not, whose step is known only when it runs: the time
// goes into instructions, and few columns would leave most of an unrolled loop to its remainder.
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads) forward_kernel(Forward<T> op) {
  const T* const row = op.x[blockIdx.x];
  constexpr int kStep = kThreads * kWidth;
  const unsigned first = threadIdx.x * kWidth;
  Moments own;
#pragma unroll 1
  for (unsigned column = first; column < op.cols; column += kStep) {
    const auto x = load_pack<kWidth>(row + column);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) own = with(own, to_float(x.values[k]));
  }
  const Moments all = joined_in_block(own);
  const float rstd = rsqrtf(all.squares / static_cast<float>(op.cols) + op.epsilon);
  T* const to = op.out[blockIdx.x];
#pragma unroll 1
  for (unsigned column = first; column < op.cols; column += kStep) {
    const auto x = load_pack<kWidth>(row + column);
    const auto gamma = load_pack<kWidth>(op.gamma + column);
    const auto beta = load_pack<kWidth>(op.beta + column);
    Pack<T, kWidth> out;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float xhat = (to_float(x.values[k]) - all.mean) * rstd;
      out.values[k] = from_float<T>(xhat * to_float(gamma.values[k]) + to_float(beta.values[k]));
    }
    store_pack(to + column, out);
  }
  if (threadIdx.x == 0) {
    op.mean[blockIdx.x] = all.mean;
    op.rstd[blockIdx.x] = rstd;
  }
}

}  // namespace

void CudaDevice::compute(const LayerNorm& op) {
  assert(op.x.rows == op.out.rows && op.x.cols == op.out.cols && op.gamma.numel == op.x.cols);
  assert(op.x.dtype == op.out.dtype && op.gamma.dtype == op.x.dtype);
  assert(op.beta.dtype == op.x.dtype && op.x.cols <= kMostColumns);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    const Forward<T> forward{rows_of<const T>(op.x),
                             elements<const T>(op.gamma),
                             elements<const T>(op.beta),
                             static_cast<float>(op.epsilon),
                             elements<float>(op.saved.mean),
                             elements<float>(op.saved.rstd),
                             rows_of<T>(op.out),
                             static_cast<unsigned>(op.x.cols)};
    with_row_width<T, kColumns>({op.x, op.out, as_row(op.gamma), as_row(op.beta)}, [&](auto width) {
      launch(stream(), {op.x.rows, kThreads}, forward_kernel<T, width>, forward);
    });
  });
}

}  // namespace dstune::cuda
