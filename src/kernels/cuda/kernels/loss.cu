// Losses by their log-softmax, and what trainers log beside them.
#include <cassert>
#include <cmath>

#include "core/device/operations/losses.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/any_rows.cuh"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"
#include "kernels/cuda/kernels/sums.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 1024;
constexpr int kRowsPerThread = 2;  // before the block becomes larger

struct NextToken {
  const std::int64_t* tokens;
  std::int64_t sequence;

  __device__ void operator()(std::int64_t i, std::int64_t& label) const {
    label = (i + 1) % sequence == 0 ? -1 : tokens[i + 1];
  }
};

/// The rows that a loss is the mean of.
struct Rows {
  const std::int64_t* labels;
  std::int64_t count;

  /// f(row, label) for the counted rows of this thread; how many the block has.
  template <class F>
  __device__ int for_counted(F f) const {
    int own = 0;
    for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
      const std::int64_t label = labels[i];
      if (label < 0) continue;
      f(i, label);
      ++own;
    }
    return sum_of_block(own);
  }
};

// One block, so that the sum has one order.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    loss_kernel(Rows rows, RowsOf<const T> log_probs, double factor, float* sum) {
  double own = 0;
  const int counted = rows.for_counted([&](std::int64_t i, std::int64_t label) {
    own -= static_cast<double>(to_float(log_probs[i][label]));
  });
  const double total = sum_of_block(own);
  if (threadIdx.x == 0 && counted > 0) *sum += static_cast<float>(factor * total / counted);
}

// It takes an `out` of zeros.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    loss_backward_kernel(Rows rows, double loss_scale, RowsOf<T> out) {
  const int counted = rows.for_counted([](std::int64_t, std::int64_t) {});
  const T value = from_float<T>(static_cast<float>(-loss_scale / max(counted, 1)));
  rows.for_counted([&](std::int64_t i, std::int64_t label) { out[i][label] = value; });
}

Grid one_block(std::int64_t rows) {
  return {1, threads_for_row(rows, kRowsPerThread, kMostThreads)};
}

}  // namespace

void CudaDevice::compute(const NextTokens& op) {
  assert(op.tokens.dtype == DType::int64 && op.labels.dtype == DType::int64);
  assert(op.tokens.numel == op.labels.numel && op.tokens.numel % op.sequence == 0);
  for_each_element(stream(), op.labels.numel,
                   NextToken{elements<const std::int64_t>(op.tokens), op.sequence},
                   Out<std::int64_t>{elements<std::int64_t>(op.labels)});
}

void CudaDevice::compute(const NllLoss& op) {
  assert(op.labels.numel == op.log_probs.rows);
  with_type(op.log_probs.dtype, [&]<class T>(std::type_identity<T>) {
    launch(stream(), one_block(op.labels.numel), loss_kernel<T>,
           Rows{elements<const std::int64_t>(op.labels), op.labels.numel},
           rows_of<const T>(op.log_probs), op.factor, elements<float>(op.sum));
  });
}

void CudaDevice::compute(const NllLossBackward& op) {
  assert(op.labels.numel == op.out.rows);
  assert(op.out.stride == op.out.cols);
  DSTUNE_CUDA_CHECK(cudaMemsetAsync(op.out.data, 0, op.out.size(), stream()));
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    launch(stream(), one_block(op.labels.numel), loss_backward_kernel<T>,
           Rows{elements<const std::int64_t>(op.labels), op.labels.numel}, op.loss_scale,
           rows_of<T>(op.out));
  });
}

namespace {

constexpr int kPerThread = 16;  // columns of a row, before a block becomes larger
constexpr std::int64_t kNone = std::int64_t{1} << 62;

struct ExpOf {
  __device__ void operator()(std::int64_t, float in, float& out) const { out = __expf(in); }
};

struct Times {
  __device__ void operator()(std::int64_t, float a, float b, float& out) const { out = a * b; }
};

struct Smaller {
  __device__ std::int64_t operator()(std::int64_t a, std::int64_t b) const { return a < b ? a : b; }
};

template <int kWidth>
__global__ void __launch_bounds__(kMostThreads)
    argmax_kernel(RowsOf<const float> in, std::int64_t cols, std::int64_t* out) {
  const float* const x = in[blockIdx.x];
  float largest = -INFINITY;
  std::int64_t place = kNone;
  // A thread meets its packs in ascending order, but the ends of the row first.
  AnyRow<kWidth>(x, cols).forward([&](auto width, std::int64_t column) {
    const auto pack = load_pack<width>(x + column);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const bool better = pack.values[k] > largest;
      if (better || (pack.values[k] == largest && column + k < place)) {
        largest = pack.values[k];
        place = column + k;
      }
    }
  });
  const float of_row = largest_of_block(largest, -INFINITY);
  const std::int64_t first = reduce_block(largest == of_row ? place : kNone, kNone, Smaller{});
  if (threadIdx.x == 0) out[blockIdx.x] = first < cols ? first : 0;
}

Grid block_per_row(const Matrix& matrix) {
  return {matrix.rows, threads_for_row(matrix.cols, kPerThread, kMostThreads)};
}

}  // namespace

void CudaDevice::compute(const Argmax& op) {
  assert(op.in.dtype == DType::fp32 && op.out.dtype == DType::int64 && op.out.numel == op.in.rows);
  with_any_row_width({op.in}, [&](auto width) {
    launch(stream(), block_per_row(op.in), argmax_kernel<width>, rows_of<const float>(op.in),
           op.in.cols, elements<std::int64_t>(op.out));
  });
}

void CudaDevice::compute(const Entropy& op) {
  assert(op.log_probs.dtype == DType::fp32 && op.out.numel == op.log_probs.rows);
  assert(op.probs.numel() == op.log_probs.numel() && op.terms.numel() == op.log_probs.numel());
  const In<float> log_probs{elements<const float>(op.log_probs)};
  const std::int64_t numel = op.log_probs.numel();
  for_each_element(stream(), numel, ExpOf{}, log_probs, Out<float>{elements<float>(op.probs)});
  for_each_element(stream(), numel, Times{}, In<float>{elements<const float>(op.probs)}, log_probs,
                   Out<float>{elements<float>(op.terms)});
  queue_row_sums(stream(kReductionLaunches), scratch<void>(), op.terms, -1.0F,
                 elements<float>(op.out));
}

}  // namespace dstune::cuda
