// Activation functions and their gradients, without branches, so that loops over them vectorise.
#pragma once

#include <cmath>
#include <stdexcept>
#include <type_traits>

#include "core/device/operations/activate.hpp"
#include "kernels/cpu/vector_math.hpp"

namespace dstune::cpu {

// gradient(d, s) is d f'(x) with what is saved: f(x) where saves_result(), otherwise x.

struct Relu {
  static float value(float x) { return x < 0.0F ? 0.0F : x; }  // NaN stays
  static float gradient(float d, float y) { return y <= 0.0F ? 0.0F : d; }
};

struct Tanh {
  static float value(float x) { return fast_tanh(x); }
  static float gradient(float d, float y) { return d * (1.0F - y * y); }
};

struct Sigmoid {
  static float value(float x) { return 1.0F / (1.0F + fast_exp(-x)); }
  static float gradient(float d, float y) { return d * (1.0F - y) * y; }
};

struct Silu {
  static float value(float x) { return x * Sigmoid::value(x); }
  static float gradient(float d, float x) {
    const float s = Sigmoid::value(x);
    return d * s * (1.0F + x * (1.0F - s));
  }
};

/// x Phi(x), Phi the distribution function of the normal distribution.
struct Gelu {
  static float value(float x) { return x * parts(x).distribution; }
  static float gradient(float d, float x) {
    constexpr float kRootOfTwoPiInverse = 0.398942280F;
    const Parts at = parts(x);
    return d * (at.distribution + x * at.exponential * kRootOfTwoPiInverse);
  }

 private:
  struct Parts {
    float distribution;  // Phi(x)
    float exponential;   // exp(-x^2 / 2)
  };
  static Parts parts(float x) {
    const float e = fast_exp(-0.5F * x * x);
    const float tail = 0.5F * erfc_over_exp(std::fabs(x) * 0.707106781F) * e;
    return {x < 0.0F ? tail : 1.0F - tail, e};
  }
};

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
struct GeluTanh {
  static float value(float x) { return 0.5F * x * (1.0F + tanh_of(x)); }
  static float gradient(float d, float x) {
    const float t = tanh_of(x);
    const float inner = kRootTwoOverPi * (1.0F + 3.0F * kCubic * x * x);
    return d * (0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner);
  }

 private:
  static constexpr float kRootTwoOverPi = 0.797884561F;
  static constexpr float kCubic = 0.044715F;

  static float tanh_of(float x) { return fast_tanh(kRootTwoOverPi * (x + kCubic * x * x * x)); }
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

}  // namespace dstune::cpu
