// Losses whose logits become their gradient in place: of all words at once, as Liger's, or tile by
// tile. One block per row, which is read for its sum, and again, from its end, which was read last,
// to become its gradient.
#include <cassert>
#include <cmath>

#include "core/device/operations/losses.hpp"
#include "kernels/activations.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/any_rows.cuh"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/elements.cuh"
#include "kernels/cuda/kernels/exp_sum.cuh"
#include "kernels/cuda/kernels/rows.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 1024;
constexpr int kPerThread = 16;  // columns of a row, before a block becomes larger

template <class T, int kWidth>
__device__ void clear_row(T* x, const AnyRow<kWidth>& row) {
  row.forward([&](auto width, std::int64_t column) {
    Pack<T, width> zeros;
#pragma unroll
    for (T& value : zeros.values) value = from_float<T>(0);
    store_pack(x + column, zeros);
  });
}

template <class T, int kWidth, class Cap>
__global__ void __launch_bounds__(kMostThreads)
    cross_entropy_kernel(RowsOf<T> logits, const std::int64_t* labels, float* losses,
                         std::int64_t cols, Cap cap) {
  T* const x = logits[blockIdx.x];
  const AnyRow<kWidth> row(x, cols);
  const std::int64_t label = labels[blockIdx.x];
  if (label < 0) {
    if (threadIdx.x == 0) losses[blockIdx.x] = 0;
    return clear_row(x, row);
  }
  ExpSum own;
  row.forward([&](auto width, std::int64_t column) { own.add(load_pack<width>(x + column), cap); });
  const ExpSum all = own.of_block();
  const float log_sum = all.largest + logf(all.sum);
  if (threadIdx.x == 0) losses[blockIdx.x] = log_sum - cap.value(to_float(x[label]));
  __syncthreads();
  row.backward([&](auto width, std::int64_t column) {
    auto pack = load_pack<width>(x + column);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float value = cap.value(to_float(pack.values[k]));
      const float probability = __expf(value - log_sum);
      const float gradient = column + k == label ? probability - 1 : probability;
      pack.values[k] = from_float<T>(gradient * cap.slope(value));
    }
    store_pack(x + column, pack);
  });
}

}  // namespace

void CudaDevice::compute(const CrossEntropy& op) {
  const Matrix& logits = op.logits;
  assert(op.labels.dtype == DType::int64 && op.labels.numel == logits.rows);
  assert(op.losses.dtype == DType::fp32 && op.losses.numel == logits.rows);
  const Grid grid{logits.rows, threads_for_row(logits.cols, kPerThread, kMostThreads)};
  with_type(logits.dtype, [&]<class T>(std::type_identity<T>) {
    with_cap<DeviceMath>(op.softcap, [&]<class Cap>(const Cap& cap) {
      with_any_row_width<T>({logits}, [&](auto width) {
        launch(stream(), grid, cross_entropy_kernel<T, width, Cap>, rows_of<T>(logits),
               elements<const std::int64_t>(op.labels), elements<float>(op.losses), logits.cols,
               cap);
      });
    });
  });
}

namespace {

/// Where a tile's rows have their labels.
struct TileLabels {
  const std::int64_t* labels;
  std::int64_t first;

  /// Below 0 or beyond the tile if it is in another one.
  __device__ std::int64_t column(std::int64_t row) const { return labels[row] - first; }
};

template <class T, int kWidth, class Cap>
__global__ void __launch_bounds__(kMostThreads)
    fold_logits_kernel(RowsOf<const T> tile, TileLabels labels, RowsOf<float> statistics,
                       std::int64_t cols, Cap cap) {
  const T* const x = tile[blockIdx.x];
  const AnyRow<kWidth> row(x, cols);
  ExpSum own;
  row.forward([&](auto width, std::int64_t column) { own.add(load_pack<width>(x + column), cap); });
  const ExpSum all = own.of_block();
  if (threadIdx.x != 0) return;
  float& largest = statistics[kLargest][blockIdx.x];
  float& sum = statistics[kExpSum][blockIdx.x];
  const float now = fmaxf(largest, all.largest);
  sum = sum * __expf(largest - now) + all.sum * __expf(all.largest - now);
  largest = now;
  const std::int64_t label = labels.column(blockIdx.x);
  if (label >= 0 && label < cols) {
    statistics[kLabelLogit][blockIdx.x] = cap.value(to_float(x[label]));
  }
}

template <class T, int kWidth, class Cap>
__global__ void __launch_bounds__(kMostThreads)
    logits_gradient_kernel(RowsOf<T> tile, TileLabels labels, const float* log_sums, float factor,
                           std::int64_t cols, Cap cap) {
  T* const x = tile[blockIdx.x];
  const std::int64_t label = labels.column(blockIdx.x);
  const float log_sum = log_sums[blockIdx.x];
  AnyRow<kWidth>(x, cols).forward([&](auto width, std::int64_t column) {
    auto pack = load_pack<width>(x + column);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float value = cap.value(to_float(pack.values[k]));
      const float probability = __expf(value - log_sum);
      const float gradient = column + k == label ? probability - 1 : probability;
      pack.values[k] = from_float<T>(factor * gradient * cap.slope(value));
    }
    store_pack(x + column, pack);
  });
}

struct LogOfSum {
  __device__ void operator()(std::int64_t, float largest, float sum, float label_logit,
                             float& log_sum, float& loss) const {
    log_sum = largest + logf(sum);
    loss = log_sum - label_logit;
  }
};

Grid block_per_row(const Matrix& matrix) {
  return {matrix.rows, threads_for_row(matrix.cols, kPerThread, kMostThreads)};
}

TileLabels labels_of(const Tensor& labels, std::int64_t first) {
  return {elements<const std::int64_t>(labels), first};
}

}  // namespace

void CudaDevice::compute(const FoldLogits& op) {
  const Matrix& tile = op.tile;
  assert(op.statistics.dtype == DType::fp32 && op.statistics.rows == kRowStatistics);
  assert(op.statistics.cols == tile.rows && op.labels.numel == tile.rows);
  with_type(tile.dtype, [&]<class T>(std::type_identity<T>) {
    with_cap<DeviceMath>(op.softcap, [&]<class Cap>(const Cap& cap) {
      with_any_row_width<T>({tile}, [&](auto width) {
        launch(stream(), block_per_row(tile), fold_logits_kernel<T, width, Cap>,
               rows_of<const T>(tile), labels_of(op.labels, op.first),
               rows_of<float>(op.statistics), tile.cols, cap);
      });
    });
  });
}

void CudaDevice::compute(const LogSums& op) {
  assert(op.log_sums.numel == op.statistics.cols && op.losses.numel == op.statistics.cols);
  const auto statistic = [&](std::int64_t row) {
    return In<float>{elements<const float>(op.statistics) + row * op.statistics.stride};
  };
  for_each_element(stream(), op.losses.numel, LogOfSum{}, statistic(kLargest), statistic(kExpSum),
                   statistic(kLabelLogit), Out<float>{elements<float>(op.log_sums)},
                   Out<float>{elements<float>(op.losses)});
}

void CudaDevice::compute(const LogitsGradient& op) {
  const Matrix& tile = op.tile;
  assert(op.labels.numel == tile.rows && op.log_sums.numel == tile.rows);
  with_type(tile.dtype, [&]<class T>(std::type_identity<T>) {
    with_cap<DeviceMath>(op.softcap, [&]<class Cap>(const Cap& cap) {
      with_any_row_width<T>({tile}, [&](auto width) {
        launch(stream(), block_per_row(tile), logits_gradient_kernel<T, width, Cap>,
               rows_of<T>(tile), labels_of(op.labels, op.first), elements<const float>(op.log_sums),
               static_cast<float>(op.factor), tile.cols, cap);
      });
    });
  });
}

}  // namespace dstune::cuda
