#include <cassert>

#include "core/device/operations/activate.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

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
