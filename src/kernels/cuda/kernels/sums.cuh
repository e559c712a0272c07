// Sums of whole tensors and of rows, by CUB: the same bits every time on the same kind of GPU.
#pragma once

#include <cstdint>

#include <cub/device/device_reduce.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>

#include "core/device/tensor.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/device/gpu.hpp"
#include "kernels/cuda/kernels/elements.cuh"
#include "kernels/cuda/kernels/reductions.cuh"

namespace dstune::cuda {

constexpr int kReductionLaunches = 2;  ///< of each of these, at most

/// f(0), f(1) ... as CUB reads them.
template <class F>
auto values_of(const F& f) {
  return thrust::make_transform_iterator(thrust::make_counting_iterator(std::int64_t{0}), f);
}

/// Queues *out = finish(combine of all value(i) with i < count, and of `none`).
/// @param value    a device functor of an index
/// @param scratch  Gpu::kScratch bytes
template <class Value, class Combine, class T, class Out, class Finish>
void queue_reduction(cudaStream_t stream, void* scratch, std::int64_t count, const Value& value,
                     const Combine& combine, T none, Out* out, const Finish& finish) {
  Bytes size = Gpu::kScratch;
  DSTUNE_CUDA_CHECK(cub::DeviceReduce::Reduce(scratch, size, values_of(value),
                                              thrust::make_transform_output_iterator(out, finish),
                                              count, combine, none, stream));
}

/// Adds a multiple of the sum to what is there.
template <class T>
struct Added {
  const T* there;
  double factor;

  __device__ T operator()(double sum) const {
    return static_cast<T>(static_cast<double>(*there) + factor * sum);
  }
};

/// Queues *sum += factor times the sum of all value(i), which is in double.
template <class Value, class T>
void queue_sum(cudaStream_t stream, void* scratch, std::int64_t count, const Value& value,
               double factor, T* sum) {
  queue_reduction(stream, scratch, count, value, Plus{}, 0.0, sum, Added<T>{sum, factor});
}

struct RowOffset {
  std::int64_t stride;
  std::int64_t column;

  __host__ __device__ std::int64_t operator()(std::int64_t row) const {
    return row * stride + column;
  }
};

struct Multiplied {
  float factor;

  __device__ float operator()(float sum) const { return factor * sum; }
};

/// Queues out[i] = factor times the sum of row i of an fp32 matrix.
inline void queue_row_sums(cudaStream_t stream, void* scratch, const Matrix& in, float factor,
                           float* out) {
  Bytes size = Gpu::kScratch;
  DSTUNE_CUDA_CHECK(cub::DeviceSegmentedReduce::Sum(
      scratch, size, elements<const float>(in),
      thrust::make_transform_output_iterator(out, Multiplied{factor}), in.rows,
      values_of(RowOffset{in.stride, 0}), values_of(RowOffset{in.stride, in.cols}), stream));
}

}  // namespace dstune::cuda
