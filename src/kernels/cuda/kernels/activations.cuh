// Activation functions and their gradients, in fp32.
#pragma once

#include <stdexcept>
#include <type_traits>

#include <cuda_runtime.h>

#include "core/device/operations/activate.hpp"

namespace dstune::cuda {

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

/// f(std::type_identity<one of the above>{})
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

}  // namespace dstune::cuda
