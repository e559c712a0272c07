// exp, tanh, erfc, log and cos without branches or tables, so that loops over them vectorise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace dstune::cpu {

/// e^x, relative error below 2e-7. NaN stays NaN; below 2^-125 the result is 0.
inline float fast_exp(float x) {
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;  // few bits: n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it leaves the integer in the low bits
  constexpr float kSmallest = -86.6F;
  constexpr float kLargest = 88.7228F;
  const float bounded = x < kSmallest ? kSmallest : (x > kLargest ? kLargest : x);
  const float shifted = bounded * kLog2E + kRound;
  const float n = shifted - kRound;
  const float r = bounded - n * kLn2High - n * kLn2Low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  // 2^(n-1), doubled afterwards: 2^128 is no float, but the product may still be one.
  const float half_scale =
      std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23U) + 0x3f000000U);
  const float result = p * half_scale * 2.0F;
  return x < kSmallest ? 0.0F : (x > kLargest ? HUGE_VALF : result);
}

/// tanh(x), relative error below 3e-7. NaN stays NaN.
inline float fast_tanh(float x) {
  constexpr float kLargest = 10.0F;  // tanh is 1 in fp32; nothing below may become denormal
  const float magnitude = std::fabs(x) > kLargest ? kLargest : std::fabs(x);
  const float z = magnitude * magnitude;
  float p = -5.70498872745e-3F;
  p = p * z + 2.06390887954e-2F;
  p = p * z - 5.37397155531e-2F;
  p = p * z + 1.33314422036e-1F;
  p = p * z - 3.33332819422e-1F;
  const float small = p * z * magnitude + magnitude;
  const float large = 1.0F - 2.0F / (fast_exp(2.0F * magnitude) + 1.0F);
  return std::copysign(magnitude < 0.625F ? small : large, x);
}

/// erfc(z) e^(z^2) for z >= 0; erfc(z) is then right to 4e-7, absolutely (Abramowitz and Stegun,
/// 7.1.26). NaN stays NaN.
inline float erfc_over_exp(float z) {
  const float t = 1.0F / (1.0F + 0.3275911F * z);
  float p = 1.061405429F;
  p = p * t - 1.453152027F;
  p = p * t + 1.421413741F;
  p = p * t - 0.284496736F;
  p = p * t + 0.254829592F;
  return p * t;
}

/// What the formulas that backends share (src/kernels) compute with.
struct VectorMath {
  struct Normal {
    float distribution;
    float exponential;
  };

  static float exp(float x) { return fast_exp(x); }
  static float tanh(float x) { return fast_tanh(x); }
  static float log(float x) { return std::log(x); }  // exact: buckets hang on it
  static float ceil(float x) { return std::ceil(x); }
  template <class Number>
  static Number root(Number x) {
    return std::sqrt(x);
  }
  static Normal normal(float x) {
    const float e = fast_exp(-0.5F * x * x);
    const float tail = 0.5F * erfc_over_exp(std::fabs(x) * 0.707106781F) * e;
    return {x < 0.0F ? tail : 1.0F - tail, e};
  }
};

/// Natural logarithm of a positive normal number; relative error below 2e-7.
inline float fast_log(float x) {
  constexpr std::uint32_t kSqrtHalf = 0x3f3504f3U;
  const std::uint32_t offset = std::bit_cast<std::uint32_t>(x) - kSqrtHalf;
  const auto e = static_cast<float>(static_cast<std::int32_t>(offset) >> 23);
  const float m = std::bit_cast<float>((offset & 0x7fffffU) + kSqrtHalf) - 1.0F;
  const float z = m * m;
  float p = 7.0376836292e-2F;
  p = p * m - 1.1514610310e-1F;
  p = p * m + 1.1676998740e-1F;
  p = p * m - 1.2420140846e-1F;
  p = p * m + 1.4249322787e-1F;
  p = p * m - 1.6668057665e-1F;
  p = p * m + 2.0000714765e-1F;
  p = p * m - 2.4999993993e-1F;
  p = p * m + 3.3333331174e-1F;
  p = p * m * z - 2.12194440e-4F * e - 0.5F * z;
  return m + p + 0.693359375F * e;
}

/// cos(2 pi u) for u in [0, 1); absolute error below 2e-7.
inline float fast_cos_turns(float u) {
  const float t = 0.25F - std::fabs(u < 0.5F ? u : u - 1.0F);  // sin(2 pi t), |t| <= 1/4
  const float y = 6.28318531F * t;
  const float z = y * y;
  float p = -2.50521084e-8F;
  p = p * z + 2.75573192e-6F;
  p = p * z - 1.98412698e-4F;
  p = p * z + 8.33333333e-3F;
  p = p * z - 1.66666667e-1F;
  return p * z * y + y;
}

}  // namespace dstune::cpu
