#include <cassert>
#include <cfloat>

#include "core/device/operations/optimizers.hpp"
#include "kernels/cuda/base/launch.cuh"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/sums.cuh"

namespace dstune::cuda {

namespace {

template <class T>
struct SquareOf {
  const T* in;

  __device__ double operator()(std::int64_t i) const {
    const auto x = static_cast<double>(to_float(in[i]));
    return x * x;
  }
};

template <class T>
struct IsSpecial {
  const T* in;

  __device__ int operator()(std::int64_t i) const {
    return fabsf(to_float(in[i])) <= FLT_MAX ? 0 : 1;
  }
};

struct Raised {
  const std::uint8_t* flag;

  __device__ std::uint8_t operator()(int found) const { return found != 0 ? 1 : *flag; }
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
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    with_number_type(op.sum.dtype, [&]<class Number>(std::type_identity<Number>) {
      queue_sum(stream(kReductionLaunches), scratch<void>(), op.in.numel,
                SquareOf<T>{elements<const T>(op.in)}, 1.0, elements<Number>(op.sum));
    });
  });
}

void CudaDevice::compute(const FindInfOrNan& op) {
  assert(op.flag.dtype == DType::uint8);
  auto* const flag = elements<std::uint8_t>(op.flag);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    queue_reduction(stream(kReductionLaunches), scratch<void>(), op.in.numel,
                    IsSpecial<T>{elements<const T>(op.in)}, Larger{}, 0, flag, Raised{flag});
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
