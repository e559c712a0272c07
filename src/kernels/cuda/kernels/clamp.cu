#include <cassert>

#include "core/device/operations/clamp.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct ToLimit {
  const std::int8_t* flag;
  float limit;

  __device__ void operator()(std::int64_t, float in, float& out) const {
    out = *flag == 0 || (in >= -limit && in <= limit) || in != in ? in : (in > 0 ? limit : -limit);
  }
};

struct WhereNotClamped {
  const std::int8_t* flag;
  float limit;

  __device__ void operator()(std::int64_t, float d_out, float in, float& d_in) const {
    const bool is_kept = *flag == 0 ? in == in : in >= -limit && in <= limit;
    d_in = is_kept ? d_out : 0.0F;
  }
};

}  // namespace

void CudaDevice::compute(const Clamp& op) {
  assert(op.flag.dtype == DType::int8 && op.flag.numel == 1);
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  const ToLimit clamp{elements<const std::int8_t>(op.flag), kLargestBesideInfinite};
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.out.numel, clamp, In<T>{elements<T>(op.in)},
                     Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const ClampBackward& op) {
  assert(op.flag.dtype == DType::int8 && op.flag.numel == 1);
  assert(op.in.numel == op.d_out.numel && op.in.numel == op.d_in.numel);
  const WhereNotClamped keep{elements<const std::int8_t>(op.flag), kLargestBesideInfinite};
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.in.numel, keep, In<T>{elements<T>(op.d_out)},
                     In<T>{elements<T>(op.in)}, Out<T>{elements<T>(op.d_in)});
  });
}

}  // namespace dstune::cuda
