// Activation functions and their gradients, in fp32, for every backend that computes.
#pragma once

#include <stdexcept>
#include <type_traits>

#include "core/device/operations/activations.hpp"

namespace dstune {

// value(x) is f(x), gradient(d, s) is d f'(x) with what is saved: f(x) where saves_result(),
// otherwise x. As PyTorch's Activation*.cu, without branches, so that loops over them vectorise.
// They are constexpr because nvcc compiles constexpr functions for the GPU, too.
//
// Math is what a backend computes with: exp(x), tanh(x), and normal(x), which has the distribution
// function of the normal distribution and exp(-x^2 / 2).

struct Relu {
  static constexpr float value(float x) { return x < 0.0F ? 0.0F : x; }  // NaN stays
  static constexpr float gradient(float d, float y) { return y <= 0.0F ? 0.0F : d; }
};

template <class Math>
struct Tanh {
  static constexpr float value(float x) { return Math::tanh(x); }
  static constexpr float gradient(float d, float y) { return d * (1.0F - y * y); }
};

template <class Math>
struct Sigmoid {
  static constexpr float value(float x) { return 1.0F / (1.0F + Math::exp(-x)); }
  static constexpr float gradient(float d, float y) { return d * (1.0F - y) * y; }
};

template <class Math>
struct Silu {
  static constexpr float value(float x) { return x / (1.0F + Math::exp(-x)); }
  static constexpr float gradient(float d, float x) {
    const float s = Sigmoid<Math>::value(x);
    return d * s * (1.0F + x * (1.0F - s));
  }
};

/// x Phi(x), Phi the distribution function of the normal distribution.
template <class Math>
struct Gelu {
  static constexpr float value(float x) { return x * Math::normal(x).distribution; }
  static constexpr float gradient(float d, float x) {
    constexpr float kRootOfTwoPiInverse = 0.398942280F;
    const auto at = Math::normal(x);
    return d * (at.distribution + x * at.exponential * kRootOfTwoPiInverse);
  }
};

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
template <class Math>
struct GeluTanh {
  static constexpr float kRootTwoOverPi = 0.797884561F;
  static constexpr float kCubic = 0.044715F;

  static constexpr float tanh_of(float x) {
    return Math::tanh(kRootTwoOverPi * (x + kCubic * x * x * x));
  }
  static constexpr float value(float x) { return 0.5F * x * (1.0F + tanh_of(x)); }
  static constexpr float gradient(float d, float x) {
    const float t = tanh_of(x);
    const float inner = kRootTwoOverPi * (1.0F + 3.0F * kCubic * x * x);
    return d * (0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner);
  }
};

/// f(std::type_identity<one of the above>{})
template <class Math, class F>
void with_activation(Activation kind, F&& f) {
  switch (kind) {
    case Activation::gelu:
      return f(std::type_identity<Gelu<Math>>{});
    case Activation::gelu_tanh:
      return f(std::type_identity<GeluTanh<Math>>{});
    case Activation::relu:
      return f(std::type_identity<Relu>{});
    case Activation::silu:
      return f(std::type_identity<Silu<Math>>{});
    case Activation::tanh:
      return f(std::type_identity<Tanh<Math>>{});
    case Activation::sigmoid:
      return f(std::type_identity<Sigmoid<Math>>{});
    case Activation::affine:
      break;
  }
  throw std::invalid_argument("no activation function with a gradient of its own");
}

/// c tanh(x / c): a cap on logits.
template <class Math>
struct TanhCap {
  float cap;

  constexpr float value(float x) const { return cap * Math::tanh(x / cap); }
  /// The derivative, by the value.
  constexpr float slope(float value) const {
    const float t = value / cap;
    return 1.0F - t * t;
  }
};

struct NoCap {
  static constexpr float value(float x) { return x; }
  static constexpr float slope(float /*value*/) { return 1.0F; }
};

/// f of one of the two; 0: no cap.
template <class Math, class F>
void with_cap(double cap, F&& f) {
  if (cap == 0) return f(NoCap{});
  f(TanhCap<Math>{static_cast<float>(cap)});
}

}  // namespace dstune
