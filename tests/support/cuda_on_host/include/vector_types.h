// CUDA's vector types, on the host.
#pragma once
#pragma GCC system_header

#define CUDA_ON_HOST 1

#define __align__(n) __attribute__((aligned(n)))

struct char4 { signed char x, y, z, w; } __align__(4);
struct uchar4 { unsigned char x, y, z, w; } __align__(4);
struct ushort2 { unsigned short x, y; } __align__(4);
struct ushort4 { unsigned short x, y, z, w; } __align__(8);
struct int2 { int x, y; } __align__(8);
struct int3 { int x, y, z; };
struct int4 { int x, y, z, w; } __align__(16);
struct uint2 { unsigned x, y; } __align__(8);
struct uint3 { unsigned x, y, z; };
struct uint4 { unsigned x, y, z, w; } __align__(16);
struct longlong2 { long long x, y; } __align__(16);
struct ulonglong2 { unsigned long long x, y; } __align__(16);
struct float2 { float x, y; } __align__(8);
struct float3 { float x, y, z; };
struct float4 { float x, y, z, w; } __align__(16);
struct double2 { double x, y; } __align__(16);

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned vx = 1, unsigned vy = 1, unsigned vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};
