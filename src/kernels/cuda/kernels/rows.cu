// Rows of matrices: copied, scaled, added up.
#include <cassert>
#include <cstdint>

#include "core/device/operations/rows.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"
#include "kernels/cuda/kernels/sums.cuh"

namespace dstune::cuda {

namespace {

/// Copies `columns` units of type T.
template <class T>
struct CopyUnits {
  RowsOf<const T> in;
  RowsOf<T> out;
  std::int64_t columns;
};

template <class T>
__global__ void __launch_bounds__(kElementThreads)
    copy_rows_kernel(CopyUnits<T> copy, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::int64_t row = quotient(i, copy.columns);
  const std::int64_t column = i - row * copy.columns;
  copy.out[row][column] = copy.in[row][column];
}

/// Copies in units of T, if all rows begin and end with one.
template <class T>
bool copy_in_units(cudaStream_t stream, const CopyRows& op) {
  const Bytes element = size_of(op.in.dtype);
  const auto units = [&](std::int64_t count) {
    return static_cast<std::int64_t>(static_cast<Bytes>(count) * element / sizeof(T));
  };
  const auto whole = [&](const Matrix& matrix) {
    const Bytes stride = static_cast<Bytes>(matrix.stride) * element;
    return reinterpret_cast<std::uintptr_t>(matrix.data) % sizeof(T) == 0 &&
           (stride % sizeof(T) == 0 || matrix.rows == 1);
  };
  if (static_cast<Bytes>(op.in.cols) * element % sizeof(T) != 0) return false;
  if (!whole(op.in) || !whole(op.out)) return false;
  const CopyUnits<T> copy{{static_cast<const T*>(op.in.data), units(op.in.stride)},
                          {static_cast<T*>(op.out.data), units(op.out.stride)},
                          units(op.in.cols)};
  const std::int64_t count = op.in.rows * copy.columns;
  launch(stream, cover(count, kElementThreads), copy_rows_kernel<T>, copy, count);
  return true;
}

struct InDouble {
  const float* values;

  __device__ double operator()(std::int64_t i) const { return static_cast<double>(values[i]); }
};

}  // namespace

void CudaDevice::compute(const CopyRows& op) {
  assert(op.in.rows == op.out.rows && op.in.cols == op.out.cols && op.in.dtype == op.out.dtype);
  static_cast<void>(
      copy_in_units<uint4>(stream(), op) || copy_in_units<std::uint64_t>(stream(), op) ||
      copy_in_units<std::uint32_t>(stream(), op) || copy_in_units<std::uint16_t>(stream(), op) ||
      copy_in_units<std::uint8_t>(stream(), op));
}

void CudaDevice::compute(const AddSum& op) {
  assert(op.values.dtype == DType::fp32 && op.sum.dtype == DType::fp32);
  queue_sum(stream(kReductionLaunches), scratch<void>(), op.values.numel,
            InDouble{elements<const float>(op.values)}, op.factor, elements<float>(op.sum));
}

namespace {

constexpr int kMostThreads = 1024;
constexpr int kPerThread = 4;  // columns of a row, before a block becomes larger

template <class In, class Factor, class Out>
__global__ void __launch_bounds__(kMostThreads)
    scale_rows_kernel(RowsOf<const In> in, const Factor* factors, RowsOf<Out> out,
                      std::int64_t cols) {
  const float factor = to_float(factors[blockIdx.x]);
  for (std::int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    out[blockIdx.x][j] = from_float<Out>(to_float(in[blockIdx.x][j]) * factor);
  }
}

template <class A, class B, class Out>
__global__ void __launch_bounds__(kMostThreads)
    row_dots_kernel(RowsOf<const A> a, RowsOf<const B> b, Out* out, std::int64_t cols) {
  float own = 0;
  for (std::int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    own += to_float(a[blockIdx.x][j]) * to_float(b[blockIdx.x][j]);
  }
  const float sum = sum_of_block(own);
  if (threadIdx.x == 0) out[blockIdx.x] = from_float<Out>(sum);
}

template <class In, class Out>
__global__ void __launch_bounds__(kMostThreads)
    sum_groups_kernel(RowsOf<const In> in, std::int64_t size, RowsOf<Out> out, std::int64_t cols) {
  for (std::int64_t j = threadIdx.x; j < cols; j += blockDim.x) {
    float sum = 0;
    for (std::int64_t row = blockIdx.x * size; row < (blockIdx.x + 1) * size; ++row) {
      sum += to_float(in[row][j]);
    }
    out[blockIdx.x][j] = from_float<Out>(sum);
  }
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kMostThreads)
    repeat_rows_kernel(RowsOf<const T> in, std::int64_t size, RowsOf<T> out, std::int64_t cols) {
  const T* const from = in[quotient(blockIdx.x, size)];
  for (std::int64_t j = std::int64_t{threadIdx.x} * kWidth; j < cols;
       j += std::int64_t{blockDim.x} * kWidth) {
    store_pack(out[blockIdx.x] + j, load_pack<kWidth>(from + j));
  }
}

Grid block_per_row(const Matrix& matrix) {
  return {matrix.rows, threads_for_row(matrix.cols, kPerThread, kMostThreads)};
}

}  // namespace

void CudaDevice::compute(const ScaleRows& op) {
  assert(op.in.rows == op.out.rows && op.in.cols == op.out.cols && op.factors.numel == op.in.rows);
  with_type(op.in.dtype, [&]<class In>(std::type_identity<In>) {
    with_type(op.factors.dtype, [&]<class Factor>(std::type_identity<Factor>) {
      with_type(op.out.dtype, [&]<class Out>(std::type_identity<Out>) {
        launch(stream(), block_per_row(op.in), scale_rows_kernel<In, Factor, Out>,
               rows_of<const In>(op.in), elements<const Factor>(op.factors), rows_of<Out>(op.out),
               op.in.cols);
      });
    });
  });
}

void CudaDevice::compute(const RowDots& op) {
  assert(op.a.rows == op.b.rows && op.a.cols == op.b.cols && op.out.numel == op.a.rows);
  with_type(op.a.dtype, [&]<class A>(std::type_identity<A>) {
    with_type(op.b.dtype, [&]<class B>(std::type_identity<B>) {
      with_type(op.out.dtype, [&]<class Out>(std::type_identity<Out>) {
        launch(stream(), block_per_row(op.a), row_dots_kernel<A, B, Out>, rows_of<const A>(op.a),
               rows_of<const B>(op.b), elements<Out>(op.out), op.a.cols);
      });
    });
  });
}

void CudaDevice::compute(const SumGroups& op) {
  assert(op.in.cols == op.out.cols && op.in.rows % op.out.rows == 0);
  with_type(op.in.dtype, [&]<class In>(std::type_identity<In>) {
    with_type(op.out.dtype, [&]<class Out>(std::type_identity<Out>) {
      launch(stream(), block_per_row(op.out), sum_groups_kernel<In, Out>, rows_of<const In>(op.in),
             op.in.rows / op.out.rows, rows_of<Out>(op.out), op.in.cols);
    });
  });
}

void CudaDevice::compute(const RepeatRows& op) {
  assert(op.in.cols == op.out.cols && op.out.rows % op.in.rows == 0);
  assert(op.in.dtype == op.out.dtype);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    with_row_width<T>({op.in, op.out}, [&](auto width) {
      launch(stream(), {op.out.rows, threads_for_row(op.in.cols / width, kPerThread, kMostThreads)},
             repeat_rows_kernel<T, width>, rows_of<const T>(op.in), op.out.rows / op.in.rows,
             rows_of<T>(op.out), op.in.cols);
    });
  });
}

}  // namespace dstune::cuda
