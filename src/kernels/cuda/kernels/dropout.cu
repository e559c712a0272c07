#include <cassert>

#include "core/device/operations/dropout.hpp"
#include "core/device/random_bits.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

struct Drop {
  std::uint64_t key;
  std::uint32_t threshold;
  float factor;

  __device__ void operator()(std::int64_t i, float in, std::uint8_t& kept, float& out) const {
    const bool keep = is_kept(key, static_cast<std::uint64_t>(i), threshold);
    kept = keep ? 1 : 0;
    out = keep ? in * factor : 0.0F;
  }
};

struct DropBackward {
  float factor;

  __device__ void operator()(std::int64_t, float d_out, std::uint8_t kept, float& d_in) const {
    d_in = kept != 0 ? d_out * factor : 0.0F;
  }
};

}  // namespace

void CudaDevice::compute(const Dropout& op) {
  assert(op.in.numel == op.out.numel && op.in.dtype == op.out.dtype);
  assert(op.mask.numel == op.in.numel && op.probability >= 0 && op.probability < 1);
  const Drop drop{make_key(op.seed), drop_threshold(op.probability),
                  static_cast<float>(1 / (1 - op.probability))};
  with_type(op.in.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.in.numel, drop, In<T>{elements<T>(op.in)},
                     Out<std::uint8_t>{elements<std::uint8_t>(op.mask)},
                     Out<T>{elements<T>(op.out)});
  });
}

void CudaDevice::compute(const DropoutBackward& op) {
  assert(op.d_out.numel == op.d_in.numel && op.d_out.dtype == op.d_in.dtype);
  assert(op.mask.numel == op.d_out.numel);
  const DropBackward drop{static_cast<float>(1 / (1 - op.probability))};
  with_type(op.d_out.dtype, [&]<class T>(std::type_identity<T>) {
    for_each_element(stream(), op.d_out.numel, drop, In<T>{elements<T>(op.d_out)},
                     In<std::uint8_t>{elements<std::uint8_t>(op.mask)},
                     Out<T>{elements<T>(op.d_in)});
  });
}

}  // namespace dstune::cuda
