#include <cassert>
#include <stdexcept>

#include "core/device/operations/activate.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/kernels/each_element.cuh"

namespace dstune::cuda {

namespace {

// value(x) is f(x), gradient(d, s) is d f'(x) with what is saved: f(x) where saves_result(),
// otherwise x. In fp32, as PyTorch's Activation*.cu.

struct Relu {
  __device__ static float value(float x) { return x < 0.0F ? 0.0F : x; }  // NaN stays
  __device__ static float gradient(float d, float y) { return y <= 0.0F ? 0.0F : d; }
};

struct Tanh {
  __device__ static float value(float x) { return tanhf(x); }
  __device__ static float gradient(float d, float y) { return d * (1.0F - y * y); }
};

struct Sigmoid {
  __device__ static float value(float x) { return 1.0F / (1.0F + expf(-x)); }
  __device__ static float gradient(float d, float y) { return d * (1.0F - y) * y; }
};

struct Silu {
  __device__ static float value(float x) { return x / (1.0F + expf(-x)); }
  __device__ static float gradient(float d, float x) {
    const float s = Sigmoid::value(x);
    return d * s * (1.0F + x * (1.0F - s));
  }
};

struct Gelu {
  __device__ static float value(float x) { return x * normcdff(x); }
  __device__ static float gradient(float d, float x) {
    constexpr float kRootOfTwoPiInverse = 0.398942280F;
    return d * (normcdff(x) + x * expf(-0.5F * x * x) * kRootOfTwoPiInverse);
  }
};

struct GeluTanh {
  static constexpr float kRootTwoOverPi = 0.797884561F;
  static constexpr float kCubic = 0.044715F;

  __device__ static float tanh_of(float x) {
    return tanhf(kRootTwoOverPi * (x + kCubic * x * x * x));
  }
  __device__ static float value(float x) { return 0.5F * x * (1.0F + tanh_of(x)); }
  __device__ static float gradient(float d, float x) {
    const float t = tanh_of(x);
    const float inner = kRootTwoOverPi * (1.0F + 3.0F * kCubic * x * x);
    return d * (0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner);
  }
};

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

template <class F>
void with_activation(Activation kind, F&& f) {
  switch (kind) {
    case Activation::gelu:
      return f(std::type_identity<Gelu>{});
    case Activation::gelu_tanh:
      return f(std::type_identity<GeluTanh>{});
    case Activation::relu:
      return f(std::type_identity<Relu>{});
    case Activation::silu:
      return f(std::type_identity<Silu>{});
    case Activation::tanh:
      return f(std::type_identity<Tanh>{});
    case Activation::sigmoid:
      return f(std::type_identity<Sigmoid>{});
    case Activation::affine:
      break;
  }
  throw std::invalid_argument("no activation function with a gradient of its own");
}

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
    with_activation(op.kind, [&]<class F>(std::type_identity<F>) { run(Forward<F>{}); });
  });
}

void CudaDevice::compute(const ActivateBackward& op) {
  assert(op.d_out.numel == op.d_x.numel && op.saved.numel == op.d_x.numel);
  assert(op.d_out.dtype == op.d_x.dtype && op.saved.dtype == op.d_x.dtype);
  with_type(op.d_x.dtype, [&]<class T>(std::type_identity<T>) {
    with_activation(op.kind, [&]<class F>(std::type_identity<F>) {
      for_each_element(stream(), op.d_x.numel, Backward<F>{}, In<T>{elements<const T>(op.d_out)},
                       In<T>{elements<const T>(op.saved)}, Out<T>{elements<T>(op.d_x)});
    });
  });
}

}  // namespace dstune::cuda
