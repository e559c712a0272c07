// Passes over all elements of tensors.
#include <cassert>

#include "core/device/operations/activations.hpp"
#include "core/device/operations/elementwise.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct Constant {
  float value;
  __device__ void operator()(std::int64_t, float& out) const { out = value; }
};

struct Assign {
  __device__ void operator()(std::int64_t, float in, float& out) const { out = in; }
};

struct Times {
  float factor;
  __device__ void operator()(std::int64_t, float& x) const { x *= factor; }
};

struct TimesInto {
  float factor;

  __device__ void operator()(std::int64_t, float in, float& out) const { out = in * factor; }
};

struct TimesNumber {
  const float* factor;
  __device__ void operator()(std::int64_t, float& x) const { x *= *factor; }
};

struct AddTo {
  template <class T>
  __device__ void operator()(std::int64_t, T& x, T y) const {
    x += y;
  }
};

template <class T>
void add(cudaStream_t stream, Tensor inout, Tensor other) {
  for_each_element(stream, inout.numel, AddTo{}, InOut<T>{elements<T>(inout)},
                   In<T>{elements<T>(other)});
}

}  // namespace

void CudaDevice::compute(const FillZero& op) {
  DSTUNE_CUDA_CHECK(cudaMemsetAsync(op.out.data, 0, op.out.size(), stream()));
}

void CudaDevice::compute(const FillConstant& op) {
  if (op.out.dtype == DType::uint8) {
    DSTUNE_CUDA_CHECK(
        cudaMemsetAsync(op.out.data, static_cast<std::uint8_t>(op.value), op.out.size(), stream()));
    return;
  }
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.out.numel, Constant{static_cast<float>(op.value)},
                     Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const Copy& op) {
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  if (op.in.data == op.out.data) return;
  DSTUNE_CUDA_CHECK(
      cudaMemcpyAsync(op.out.data, op.in.data, op.out.size(), cudaMemcpyDeviceToDevice, stream()));
}

void CudaDevice::compute(const Cast& op) {
  assert(op.in.numel == op.out.numel);
  if (op.in.dtype == op.out.dtype) return compute(Copy{op.in, op.out});
  with_type(op.in.dtype, [&]<class From>(std::type_identity<From>) {
    with_type(op.out.dtype, [&]<class To>(std::type_identity<To>) {
      for_each_element(stream(), op.in.numel, Assign{}, In<From>{elements<From>(op.in)},
                       Out<To>{elements<To>(op.out)});
    });
  });
}

void CudaDevice::compute(const Scale& op) {
  with_type(op.inout.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.inout.numel, Times{static_cast<float>(op.factor)},
                     InOut<T>{elements<T>(op.inout)});
  });
}

void CudaDevice::compute(const ScaleTo& op) {
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.in.numel, TimesInto{static_cast<float>(op.factor)},
                     In<T>{elements<T>(op.in)}, Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const ScaleBy& op) {
  assert(op.factor.dtype == DType::fp32);
  with_type(op.inout.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.inout.numel, TimesNumber{elements<float>(op.factor)},
                     InOut<T>{elements<T>(op.inout)});
  });
}

void CudaDevice::compute(const Add& op) {
  assert(op.inout.numel == op.other.numel && op.inout.dtype == op.other.dtype);
  if (op.inout.dtype == DType::fp64) return add<double>(stream(), op.inout, op.other);
  with_type(op.inout.dtype,
            [&]<class T>(std::type_identity<T>) { add<T>(stream(), op.inout, op.other); });
}

namespace {

struct ToLimit {
  const std::uint8_t* flag;
  float limit;

  __device__ void operator()(std::int64_t, float in, float& out) const {
    out = *flag == 0 || (in >= -limit && in <= limit) || in != in ? in : (in > 0 ? limit : -limit);
  }
};

struct WhereNotClamped {
  const std::uint8_t* flag;
  float limit;

  __device__ void operator()(std::int64_t, float d_out, float in, float& d_in) const {
    const bool is_kept = *flag == 0 ? in == in : in >= -limit && in <= limit;
    d_in = is_kept ? d_out : 0.0F;
  }
};

}  // namespace

void CudaDevice::compute(const Clamp& op) {
  assert(op.flag.dtype == DType::uint8 && op.flag.numel == 1);
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  const ToLimit clamp{elements<const std::uint8_t>(op.flag), kLargestBesideInfinite};
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.out.numel, clamp, In<T>{elements<T>(op.in)},
                     Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const ClampBackward& op) {
  assert(op.flag.dtype == DType::uint8 && op.flag.numel == 1);
  assert(op.in.numel == op.d_out.numel && op.in.numel == op.d_in.numel);
  const WhereNotClamped keep{elements<const std::uint8_t>(op.flag), kLargestBesideInfinite};
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.in.numel, keep, In<T>{elements<T>(op.d_out)},
                     In<T>{elements<T>(op.in)}, Out<T>{elements<T>(op.d_in)});
  });
}

namespace {

struct Product {
  __device__ void operator()(std::int64_t, float a, float b, float& out) const { out = a * b; }
};

}  // namespace

void CudaDevice::compute(const Multiply& op) {
  assert(op.a.numel == op.b.numel && op.a.numel == op.out.numel);
  assert(op.a.dtype == op.b.dtype && op.a.dtype == op.out.dtype);
  with_type(op.out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.out.numel, Product{}, In<T>{elements<T>(op.a)},
                     In<T>{elements<T>(op.b)}, Out<T>{elements<T>(op.out)});
  });
}

}  // namespace dstune::cuda
