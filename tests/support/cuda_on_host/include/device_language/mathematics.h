// Mathematical functions and intrinsics of the device, on the host.
#pragma once
#pragma GCC system_header

#include <math.h>

#include <cmath>
#include <concepts>
#include <limits>

namespace cuda_on_host {

/// The nearest integer, the type's bound beyond it, 0 for NaN: as the device converts.
template <class Integer>
Integer saturated(double rounded) {
  if (rounded != rounded) return 0;
  if (rounded <= static_cast<double>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
  if (rounded >= static_cast<double>(std::numeric_limits<Integer>::max())) return std::numeric_limits<Integer>::max();
  return static_cast<Integer>(rounded);
}

inline float exp10(float x) { return std::pow(10.0F, x); }

}  // namespace cuda_on_host

// Macros, because the C library declares functions of these names.
#define __expf ::expf
#define __exp10f ::cuda_on_host::exp10
#define __logf ::logf
#define __log2f ::log2f
#define __log10f ::log10f
#define __powf ::powf
#define __sinf ::sinf
#define __cosf ::cosf
#define __tanf ::tanf
#define __sincosf ::sincosf

inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __saturatef(float x) { return x > 0.0F ? (x < 1.0F ? x : 1.0F) : 0.0F; }

inline float __fdividef(float a, float b) { return a / b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0F / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frsqrt_rn(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dmul_rn(double a, double b) { return a * b; }

inline int __float2int_rn(float x) { return cuda_on_host::saturated<int>(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return cuda_on_host::saturated<int>(std::trunc(x)); }
inline int __float2int_rd(float x) { return cuda_on_host::saturated<int>(std::floor(x)); }
inline int __float2int_ru(float x) { return cuda_on_host::saturated<int>(std::ceil(x)); }
inline unsigned __float2uint_rn(float x) { return cuda_on_host::saturated<unsigned>(std::nearbyint(x)); }
inline unsigned __float2uint_rz(float x) { return cuda_on_host::saturated<unsigned>(std::trunc(x)); }
inline long long __float2ll_rn(float x) { return cuda_on_host::saturated<long long>(std::nearbyint(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }
inline double __ll2double_rn(long long x) { return static_cast<double>(x); }

inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline long min(long a, long b) { return b < a ? b : a; }
inline long max(long a, long b) { return a < b ? b : a; }
inline unsigned long min(unsigned long a, unsigned long b) { return b < a ? b : a; }
inline unsigned long max(unsigned long a, unsigned long b) { return a < b ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
inline float min(float a, float b) { return ::fminf(a, b); }
inline float max(float a, float b) { return ::fmaxf(a, b); }
inline double min(double a, double b) { return ::fmin(a, b); }
inline double max(double a, double b) { return ::fmax(a, b); }
