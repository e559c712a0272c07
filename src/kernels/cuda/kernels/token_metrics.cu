#include <cassert>
#include <cmath>

#include "core/device/operations/token_metrics.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/any_rows.cuh"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/reductions.cuh"
#include "kernels/cuda/kernels/rows.cuh"
#include "kernels/cuda/kernels/sums.cuh"

namespace dstune::cuda {

namespace {

constexpr int kMostThreads = 1024;
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
