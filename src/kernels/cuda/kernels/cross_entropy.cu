// One block per row, as Liger's: the row is read for its sum, and again, from its end, which was
// read last, to become its gradient.
#include <cassert>
#include <cmath>

#include "core/device/operations/cross_entropy.hpp"
#include "kernels/activations.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/any_rows.cuh"
#include "kernels/cuda/kernels/device_math.cuh"
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

}  // namespace dstune::cuda
