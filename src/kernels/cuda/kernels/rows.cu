#include <cassert>
#include <cstdint>

#include "core/device/operations/rows.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/rows.cuh"
#include "kernels/cuda/kernels/sums.cuh"

namespace dstune::cuda {

namespace {

/// Of `columns` units of type T.
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

/// In units of T, if all rows begin and end with one.
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

}  // namespace dstune::cuda
