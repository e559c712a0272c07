#include <cassert>

#include "core/device/operations/elementwise.hpp"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/elements.cuh"

namespace dstune::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kPacks = 2;
constexpr int kBatches = 4;  // rows read before any is added

/// A matrix by rows, in packs of kWidth.
template <class T, int kWidth>
struct Rows {
  T* data;
  std::int64_t stride;

  Rows(const Matrix& matrix) : data(elements<T>(matrix)), stride(matrix.stride) {}

  __device__ T* at(std::int64_t row, std::int64_t pack) const {
    return data + row * stride + pack * kWidth;
  }
};

template <class T, int kWidth>
__device__ Pack<T, kWidth> sum_of(const Pack<T, kWidth>& a, const Pack<T, kWidth>& b) {
  Pack<T, kWidth> sum;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) {
    sum.values[k] = from_float<T>(to_float(a.values[k]) + to_float(b.values[k]));
  }
  return sum;
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    add_rows(Rows<const T, kWidth> a, Rows<const T, kWidth> b, std::int64_t b_rows,
             Rows<T, kWidth> out, std::int64_t row_packs, std::int64_t packs) {
  const std::int64_t first = std::int64_t{blockIdx.x} * kThreads * kPacks + threadIdx.x;
  Pack<T, kWidth> left[kPacks];
  Pack<T, kWidth> right[kPacks];
  T* sum[kPacks];
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const std::int64_t i = first + p * kThreads;
    if (i >= packs) break;
    const std::int64_t row = quotient(i, row_packs);
    const std::int64_t pack = i - row * row_packs;
    left[p] = load_pack<kWidth>(a.at(row, pack));
    right[p] = load_pack<kWidth>(b.at(row - quotient(row, b_rows) * b_rows, pack));
    sum[p] = out.at(row, pack);
  }
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    if (first + p * kThreads >= packs) return;
    store_pack(sum[p], sum_of(left[p], right[p]));
  }
}

/// One thread for each pack of d_b: it adds up its rows, in order.
template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    sum_batches(Rows<const T, kWidth> d_out, std::int64_t rows, Rows<T, kWidth> d_b,
                std::int64_t b_rows, std::int64_t row_packs, std::int64_t packs) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= packs) return;
  const std::int64_t b_row = quotient(i, row_packs);
  const std::int64_t pack = i - b_row * row_packs;
  float sums[kWidth] = {};
  for (std::int64_t row = b_row; row < rows; row += kBatches * b_rows) {
    Pack<T, kWidth> parts[kBatches];
#pragma unroll
    for (int p = 0; p < kBatches; ++p) {
      if (row + p * b_rows < rows) parts[p] = load_pack<kWidth>(d_out.at(row + p * b_rows, pack));
    }
#pragma unroll
    for (int p = 0; p < kBatches; ++p) {
      if (row + p * b_rows >= rows) break;
#pragma unroll
      for (int k = 0; k < kWidth; ++k) sums[k] += to_float(parts[p].values[k]);
    }
  }
  Pack<T, kWidth> result;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) result.values[k] = from_float<T>(sums[k]);
  store_pack(d_b.at(b_row, pack), result);
}

/// f.operator()<T, kWidth>() with the largest packs that the rows of all matrices allow.
template <class F, class... Others>  // CUDA 12.4's nvcc breaks a "const auto&..." beside class F
void with_packs(const Matrix& first, const F& f, const Others&... others) {
  with_type(first.dtype, [&]<class T>(std::type_identity<T>) {
    constexpr int kWidth = kPackWidth<T>;
    if (has_packed_rows<kWidth, T>(first) && (has_packed_rows<kWidth, T>(others) && ...)) {
      f.template operator()<T, kWidth>();
    } else {
      f.template operator()<T, 1>();
    }
  });
}

}  // namespace

void CudaDevice::compute(const AddBroadcast& op) {
  assert(op.a.rows == op.out.rows && op.a.cols == op.out.cols && op.a.cols == op.b.cols);
  assert(op.a.rows % op.b.rows == 0);
  assert(op.a.dtype == op.out.dtype && op.b.dtype == op.out.dtype);
  const auto add = [&]<class T, int kWidth>() {
    const std::int64_t row_packs = op.out.cols / kWidth;
    const std::int64_t packs = op.out.rows * row_packs;
    launch(stream(), cover(packs, kThreads, kPacks), add_rows<T, kWidth>,
           Rows<const T, kWidth>(op.a), Rows<const T, kWidth>(op.b), op.b.rows,
           Rows<T, kWidth>(op.out), row_packs, packs);
  };
  with_packs(op.out, add, op.a, op.b);
}

void CudaDevice::compute(const AddBias& op) {
  assert(op.inout.cols == op.bias.numel);
  compute(AddBroadcast{.a = op.inout, .b = as_matrix(op.bias, 1, op.bias.numel), .out = op.inout});
}

void CudaDevice::compute(const AddBroadcastBackward& op) {
  assert(op.d_out.rows % op.d_b.rows == 0 && op.d_out.cols == op.d_b.cols);
  assert(op.d_out.dtype == op.d_b.dtype);
  const auto sum = [&]<class T, int kWidth>() {
    const std::int64_t row_packs = op.d_b.cols / kWidth;
    const std::int64_t packs = op.d_b.rows * row_packs;
    launch(stream(), cover(packs, kThreads), sum_batches<T, kWidth>,
           Rows<const T, kWidth>(op.d_out), op.d_out.rows, Rows<T, kWidth>(op.d_b), op.d_b.rows,
           row_packs, packs);
  };
  with_packs(op.d_b, sum, op.d_out);
}

}  // namespace dstune::cuda
