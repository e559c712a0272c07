// Scores by how far a key is from its query.
#include <cassert>

#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/scores.hpp"

namespace dstune::cuda {

namespace {

struct Distance {
  std::int64_t sequence;
  DistanceBucket<DeviceMath> buckets;

  __device__ void operator()(std::int64_t index, std::int64_t& out) const {
    const std::int64_t query = quotient(index, sequence);
    out = buckets.of(query - (index - query * sequence));
  }
};

struct Shift {
  std::int64_t sign;
  std::int64_t span;

  __device__ void operator()(std::int64_t, std::int64_t in, std::int64_t& out) const {
    const std::int64_t shifted = sign * in + span;
    const std::int64_t last = 2 * span - 1;
    out = shifted < 0 ? 0 : shifted > last ? last : shifted;
  }
};

}  // namespace

void CudaDevice::compute(const FillDistances& op) {
  assert(op.out.dtype == DType::int64 && op.out.numel == op.sequence * op.sequence);
  for_each_element(stream(), op.out.numel, Distance{op.sequence, DistanceBucket<DeviceMath>(op)},
                   Out<std::int64_t>{elements<std::int64_t>(op.out)});
}

void CudaDevice::compute(const ShiftDistances& op) {
  assert(op.in.dtype == DType::int64 && op.out.dtype == DType::int64);
  assert(op.in.numel == op.out.numel);
  for_each_element(stream(), op.out.numel, Shift{op.sign, op.span},
                   In<std::int64_t>{elements<std::int64_t>(op.in)},
                   Out<std::int64_t>{elements<std::int64_t>(op.out)});
}

namespace {

template <class T>
struct Gather {
  const T* in;
  std::int64_t stride;
  const std::int64_t* index;
  std::int64_t period;  // rows of the index
  std::int64_t columns;

  __device__ void operator()(std::int64_t at, float& out) const {
    const std::int64_t row = quotient(at, columns);
    const std::int64_t of_index = row - quotient(row, period) * period;
    out = to_float(in[row * stride + index[of_index * columns + at - row * columns]]);
  }
};

template <class T>
struct Runs {
  const T* d_out;
  bool transposed;
  const std::int64_t* index;
  std::int64_t period;
  std::int64_t columns;
  T* d_in;
  std::int64_t width;

  __device__ float gradient(std::int64_t row, std::int64_t i, std::int64_t j) const {
    return to_float(d_out[transposed ? (row - i + j) * columns + i : row * columns + j]);
  }
};

/// The thread of the first of equal indices adds up all of them.
template <class T>
__global__ void __launch_bounds__(kElementThreads) add_runs_kernel(std::int64_t count, Runs<T> op) {
  const std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const std::int64_t row = quotient(at, op.columns);
  const std::int64_t i = row - quotient(row, op.period) * op.period;
  const std::int64_t* const index = op.index + i * op.columns;
  std::int64_t j = at - row * op.columns;
  const std::int64_t target = index[j];
  if (j > 0 && index[j - 1] == target) return;
  float sum = 0;
  for (; j < op.columns && index[j] == target; ++j) sum += op.gradient(row, i, j);
  op.d_in[row * op.width + target] = from_float<T>(sum);
}

template <class T>
struct PlusTransposed {
  const T* other;
  std::int64_t size;

  __device__ void operator()(std::int64_t at, float& sum) const {
    const std::int64_t row = quotient(at, size);
    const std::int64_t first = quotient(row, size) * size;
    const std::int64_t j = at - row * size;
    sum += to_float(other[(first + j) * size + row - first]);
  }
};

}  // namespace

void CudaDevice::compute(const GatherColumns& op) {
  assert(op.in.rows == op.out.rows && op.in.dtype == op.out.dtype);
  assert(op.index.dtype == DType::int64 && op.out.stride == op.out.cols);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    const Gather<T> gather{elements<T>(op.in), op.in.stride, elements<std::int64_t>(op.index),
                           op.index.numel / op.out.cols, op.out.cols};
    for_each_element(stream(), op.out.numel(), gather, Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const GatherColumnsBackward& op) {
  const std::int64_t columns = op.d_out.cols;
  const std::int64_t period = op.index.numel / columns;
  assert(op.d_out.rows == op.d_in.rows && op.d_out.dtype == op.d_in.dtype);
  assert(op.d_out.stride == columns && op.d_in.stride == op.d_in.cols);
  assert(!op.transposed || period == columns);
  constexpr int kLaunches = 2;
  cudaStream_t own = stream(kLaunches);
  DSTUNE_CUDA_CHECK(cudaMemsetAsync(op.d_in.data, 0, op.d_in.size(), own));
  with_type(op.d_in.dtype, [&]<class T>(std::type_identity<T>) {
    const Runs<T> runs{elements<const T>(op.d_out),
                       op.transposed,
                       elements<const std::int64_t>(op.index),
                       period,
                       columns,
                       elements<T>(op.d_in),
                       op.d_in.cols};
    launch(own, cover(op.d_out.numel(), kElementThreads), add_runs_kernel<T>, op.d_out.numel(),
           runs);
  });
}

void CudaDevice::compute(const AddTransposed& op) {
  assert(op.inout.numel == op.other.numel && op.inout.dtype == op.other.dtype);
  with_type(op.inout.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.inout.numel, PlusTransposed<T>{elements<T>(op.other), op.size},
                     InOut<T>{elements<T>(op.inout)});
  });
}

}  // namespace dstune::cuda
