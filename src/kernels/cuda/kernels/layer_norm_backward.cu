// One pass over d_out and x: a block takes every gridDim.x-th row, writes its d_x, and keeps the
// sums of its columns, which a second kernel adds up in the order of the blocks.
#include <algorithm>
#include <cassert>

#include "core/device/operations/layer_norm.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 512;
constexpr int kBlocksPerMultiprocessor = 4;

template <class T>
struct Backward {
  RowsOf<const T> d_out;
  RowsOf<const T> x;
  const T* gamma;
  const float* mean;
  const float* rstd;
  RowsOf<T> d_x;
  float* sums;  // of each block, of gamma's and of beta's gradients (blocks, 2, cols)
  std::int64_t rows;
  std::int64_t cols;
};

/// The sums of some columns of one row.
struct RowSums {
  float g = 0;
  float g_xhat = 0;

  __device__ RowSums operator+(const RowSums& other) const {
    return {g + other.g, g_xhat + other.g_xhat};
  }
};

template <int kWidth>
struct ColumnSums {
  float gamma[kWidth] = {};
  float beta[kWidth] = {};
};

/// What a thread does with one pack of columns.
template <class T, int kWidth>
struct Columns {
  const Backward<T>& op;
  std::int64_t column;

  __device__ void add_row(std::int64_t i, RowSums& row, ColumnSums<kWidth>& columns) const {
    const auto d_out = load_pack<kWidth>(op.d_out[i] + column);
    const auto x = load_pack<kWidth>(op.x[i] + column);
    const auto gamma = load_pack<kWidth>(op.gamma + column);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float d = to_float(d_out.values[k]);
      const float xhat = (to_float(x.values[k]) - op.mean[i]) * op.rstd[i];
      const float g = d * to_float(gamma.values[k]);
      row.g += g;
      row.g_xhat += g * xhat;
      columns.gamma[k] += d * xhat;
      columns.beta[k] += d;
    }
  }

  // What was read before is still in the first cache.
  __device__ void store_row(std::int64_t i, const RowSums& means) const {
    const auto d_out = load_pack<kWidth>(op.d_out[i] + column);
    const auto x = load_pack<kWidth>(op.x[i] + column);
    const auto gamma = load_pack<kWidth>(op.gamma + column);
    Pack<T, kWidth> d_x;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float xhat = (to_float(x.values[k]) - op.mean[i]) * op.rstd[i];
      const float g = to_float(d_out.values[k]) * to_float(gamma.values[k]);
      d_x.values[k] = from_float<T>(op.rstd[i] * (g - means.g - xhat * means.g_xhat));
    }
    store_pack(op.d_x[i] + column, d_x);
  }

  __device__ void store_sums(const ColumnSums<kWidth>& columns) const {
    float* const own = op.sums + std::int64_t{blockIdx.x} * 2 * op.cols + column;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      own[k] = columns.gamma[k];
      own[op.cols + k] = columns.beta[k];
    }
  }
};

/// @tparam kPacks  of columns that every thread has at most
template <class T, int kWidth, int kPacks>
__global__ void __launch_bounds__(kMostThreads) backward_kernel(Backward<T> op) {
  const auto n = static_cast<float>(op.cols);
  const auto columns = [&](int p) {
    return Columns<T, kWidth>{op, (std::int64_t{p} * blockDim.x + threadIdx.x) * kWidth};
  };
  ColumnSums<kWidth> sums[kPacks];
  for (std::int64_t i = blockIdx.x; i < op.rows; i += gridDim.x) {
    RowSums row;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (columns(p).column < op.cols) columns(p).add_row(i, row, sums[p]);
    }
    row = sum_of_block(row);
    const RowSums means{row.g / n, row.g_xhat / n};
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if (columns(p).column < op.cols) columns(p).store_row(i, means);
    }
  }
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (columns(p).column < op.cols) columns(p).store_sums(sums[p]);
  }
}

}  // namespace

}  // namespace dstune::cuda
