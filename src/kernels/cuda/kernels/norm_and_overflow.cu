#include <cassert>
#include <cfloat>

#include "core/device/operations/norm_and_overflow.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"
#include "kernels/cuda/kernels/reductions.cuh"

namespace dstune::cuda {

namespace {

constexpr std::int64_t kMostBlocks = 2048;  // many more than run at once
constexpr int kFinishThreads = 256;

/// partials[b] = the sum of the squares that block b has seen.
struct Squares {
  double* partials;
  double sum;

  __device__ void operator()(std::int64_t, float x) {
    sum += static_cast<double>(x) * static_cast<double>(x);
  }
  __device__ void finish() const {
    const double total = sum_of_block(sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = total;
  }
};

template <class T>
__global__ void add_partials(const double* partials, std::int64_t count, T* sum) {
  double own = 0;
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) own += partials[i];
  const double total = sum_of_block(own);
  if (threadIdx.x == 0) *sum = static_cast<T>(static_cast<double>(*sum) + total);
}

struct FindSpecial {
  std::int8_t* flag;
  bool found;

  __device__ void operator()(std::int64_t, float x) { found = found || !(fabsf(x) <= FLT_MAX); }
  // Whichever block finds one writes the same.
  __device__ void finish() const {
    if (__syncthreads_or(found ? 1 : 0) != 0 && threadIdx.x == 0) *flag = 1;
  }
};

template <class T>
__global__ void find_clip_factor(const T* squares, double clipping, double loss_scale,
                                 float* factor) {
  if (threadIdx.x != 0) return;
  const double norm = sqrt(static_cast<double>(*squares)) / loss_scale;
  const double excess = clipping > 0 ? fmax(1.0, (norm + 1e-6) / clipping) : 1.0;
  *factor = static_cast<float>(1 / (loss_scale * excess));
}

/// f(std::type_identity<T>{}) with the type of a number: fp32 or fp64.
template <class F>
void with_number_type(DType dtype, F f) {
  assert(dtype == DType::fp32 || dtype == DType::fp64);
  if (dtype == DType::fp64) {
    f(std::type_identity<double>{});
  } else {
    f(std::type_identity<float>{});
  }
}

}  // namespace

void CudaDevice::compute(const AddSquares& op) {
  auto* const partials = scratch<double>();
  std::int64_t blocks = 0;
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    blocks = for_each_element(stream(), op.in.numel, kMostBlocks, Squares{partials, 0},
                              In<T>{elements<T>(op.in)});
  });
  if (blocks == 0) return;
  with_number_type(op.sum.dtype, [&]<class T>(std::type_identity<T>) {
    launch(stream(), {1, kFinishThreads}, add_partials<T>, partials, blocks, elements<T>(op.sum));
  });
}

void CudaDevice::compute(const FindInfOrNan& op) {
  assert(op.flag.dtype == DType::int8);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.in.numel, kMostBlocks,
                     FindSpecial{elements<std::int8_t>(op.flag), false}, In<T>{elements<T>(op.in)});
  });
}

void CudaDevice::compute(const ClipFactor& op) {
  assert(op.factor.dtype == DType::fp32);
  with_number_type(op.squares.dtype, [&]<class T>(std::type_identity<T>) {
    launch(stream(), {1, kWarp}, find_clip_factor<T>, elements<T>(op.squares), op.clipping,
           op.loss_scale, elements<float>(op.factor));
  });
}

}  // namespace dstune::cuda
