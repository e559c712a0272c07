#include <cassert>

#include "core/device/operations/norms.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 256;
constexpr int kMostHeld = 4;  // packs of a row that a thread keeps

template <class T>
struct Forward {
  RowsOf<const T> x;
  const T* gamma;
  const T* beta;
  float epsilon;
  float* mean;
  float* rstd;
  RowsOf<T> out;
  std::int64_t cols;
};

/// A row as a block's threads keep it; where they keep as much as they may, what does not fit is
/// read again.
template <class T, int kWidth, int kHeld>
class HeldRow {
 public:
  using Values = Pack<T, kWidth>;

  __device__ HeldRow(const T* row, std::int64_t cols) : row_(row), cols_(cols) {
#pragma unroll
    for (int p = 0; p < kHeld; ++p) {
      if (column(p) < cols_) held_[p] = load_pack<kWidth>(row_ + column(p));
    }
  }

  /// f(column, the pack from there)
  template <class F>
  __device__ void for_packs(F f) const {
#pragma unroll
    for (int p = 0; p < kHeld; ++p) {
      if (column(p) < cols_) f(column(p), held_[p]);
    }
    if constexpr (kHeld == kMostHeld) {
      for (std::int64_t i = column(kHeld); i < cols_; i += std::int64_t{blockDim.x} * kWidth) {
        f(i, load_pack<kWidth>(row_ + i));
      }
    }
  }

 private:
  __device__ static std::int64_t column(int p) {
    return (std::int64_t{p} * blockDim.x + threadIdx.x) * kWidth;
  }

  const T* row_;
  std::int64_t cols_;
  Values held_[kHeld];
};

// The variance in a second pass over the registers: nothing cancels.
template <class T, int kWidth, int kHeld>
__global__ void __launch_bounds__(kMostThreads) forward_kernel(Forward<T> op) {
  const std::int64_t i = blockIdx.x;
  const auto n = static_cast<float>(op.cols);
  const HeldRow<T, kWidth, kHeld> row(op.x[i], op.cols);
  float sum = 0;
  row.for_packs([&](std::int64_t, const Pack<T, kWidth>& x) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum += to_float(x.values[k]);
  });
  const float mean = sum_of_block(sum) / n;
  float squares = 0;
  row.for_packs([&](std::int64_t, const Pack<T, kWidth>& x) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float centred = to_float(x.values[k]) - mean;
      squares += centred * centred;
    }
  });
  const float rstd = 1.0F / sqrtf(sum_of_block(squares) / n + op.epsilon);
  row.for_packs([&](std::int64_t column, const Pack<T, kWidth>& x) {
    const auto gamma = load_pack<kWidth>(op.gamma + column);
    const auto beta = load_pack<kWidth>(op.beta + column);
    Pack<T, kWidth> out;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float xhat = (to_float(x.values[k]) - mean) * rstd;
      out.values[k] = from_float<T>(xhat * to_float(gamma.values[k]) + to_float(beta.values[k]));
    }
    store_pack(op.out[i] + column, out);
  });
  if (threadIdx.x == 0) {
    op.mean[i] = mean;
    op.rstd[i] = rstd;
  }
}

// Each pack that a thread has room for takes registers, and with fewer blocks at a time memory
// waits.
template <class T, int kWidth>
void queue_rows(cudaStream_t stream, std::int64_t rows, const Forward<T>& op) {
  const int threads = threads_for_row(op.cols / kWidth, kWidth == 1 ? kMostHeld : 1, kMostThreads);
  if constexpr (kWidth > 1) {
    if (op.cols <= std::int64_t{kMostThreads} * kWidth) {
      return launch(stream, {rows, threads}, forward_kernel<T, kWidth, 1>, op);
    }
  }
  launch(stream, {rows, threads}, forward_kernel<T, kWidth, kMostHeld>, op);
}

}  // namespace

void CudaDevice::compute(const LayerNorm& op) {
  assert(op.x.rows == op.out.rows && op.x.cols == op.out.cols && op.gamma.numel == op.x.cols);
  assert(op.x.dtype == op.out.dtype && op.gamma.dtype == op.x.dtype);
  assert(op.beta.dtype == op.x.dtype);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    const Forward<T> forward{rows_of<const T>(op.x),
                             elements<const T>(op.gamma),
                             elements<const T>(op.beta),
                             static_cast<float>(op.epsilon),
                             elements<float>(op.saved.mean),
                             elements<float>(op.saved.rstd),
                             rows_of<T>(op.out),
                             op.x.cols};
    with_row_width<T>({op.x, op.out, as_row(op.gamma), as_row(op.beta)},
                      [&](auto width) { queue_rows<T, width>(stream(), op.x.rows, forward); });
  });
}

}  // namespace dstune::cuda
