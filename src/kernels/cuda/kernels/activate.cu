#include <cassert>

#include "core/device/operations/activate.hpp"
#include "kernels/activations.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/device_math.cuh"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct Affine {
  float factor;
  float addend;
  __device__ void operator()(std::int64_t, float x, float& out) const { out = factor * x + addend; }
};
template <class F>
struct Forward {
  __device__ void operator()(std::int64_t, float x, float& out) const { out = F::value(x); }
};
template <class F>
struct Backward {
  __device__ void operator()(std::int64_t, float d, float saved, float& d_x) const {
    d_x = F::gradient(d, saved);
  }
};

}  // namespace

void CudaDevice::compute(const Activate& op) {
  assert(op.x.numel == op.out.numel && op.x.dtype == op.out.dtype);
  with_type(op.x.dtype, [&]<class T>(std::type_identity<T>) {
    const auto run = [&](const auto& f) {
      for_each_element(stream(), op.x.numel, f, In<T>{elements<const T>(op.x)},
                       Out<T>{elements<T>(op.out)});
    };
    if (op.kind == Activation::affine) {
      return run(Affine{static_cast<float>(op.factor), static_cast<float>(op.addend)});
    }
    with_activation<DeviceMath>(op.kind,
                                [&]<class F>(std::type_identity<F>) { run(Forward<F>{}); });
  });
}

void CudaDevice::compute(const ActivateBackward& op) {
  assert(op.d_out.numel == op.d_x.numel && op.saved.numel == op.d_x.numel);
  assert(op.d_out.dtype == op.d_x.dtype && op.saved.dtype == op.d_x.dtype);
  with_type(op.d_x.dtype, [&]<class T>(std::type_identity<T>) {
    with_activation<DeviceMath>(op.kind, [&]<class F>(std::type_identity<F>) {
      for_each_element(stream(), op.d_x.numel, Backward<F>{}, In<T>{elements<const T>(op.d_out)},
                       In<T>{elements<const T>(op.saved)}, Out<T>{elements<T>(op.d_x)});
    });
  });
}

}  // namespace dstune::cuda
