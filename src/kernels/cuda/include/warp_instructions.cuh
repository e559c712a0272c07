// Instructions of GPUs from 7.5 on that CUDA C++ has no functions for. For older GPUs they do
// nothing: kernels that use them are compiled, never started.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
#define DSTUNE_FROM_75(statement)
#else
#define DSTUNE_FROM_75(statement) statement
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define DSTUNE_FROM_80(statement)
#else
#define DSTUNE_FROM_80(statement) statement
#endif

namespace dstune::cuda {

/// Reads four 8 x 8 matrices of 16-bit elements from shared memory: lane l says where row l % 8 of
/// matrix l / 8 is, 16 bytes. values[i] becomes elements 2 (l % 4) and the next of matrix i's row
/// l / 4.
__device__ inline void load_matrices(std::uint32_t (&values)[4], const void* row) {
  [[maybe_unused]] const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  DSTUNE_FROM_75(asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                              : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
                              : "r"(at)));
}

/// The same, each matrix transposed.
__device__ inline void load_transposed(std::uint32_t (&values)[4], const void* row) {
  [[maybe_unused]] const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  DSTUNE_FROM_75(
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                   : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
                   : "r"(at)));
}

/// sums (16, 8) += a (16, 16) b (16, 8), T's in pairs. Lane l, with r = l / 4 and c = 2 (l % 4),
/// has
/// - sums: (r, c), (r, c + 1), (r + 8, c), (r + 8, c + 1);
/// - a: pairs that begin at (r, c), (r + 8, c), (r, c + 8), (r + 8, c + 8);
/// - b: pairs of a column that begin at (c, r), (c + 8, r).
/// bf16 does nothing before 8.0.
template <class T>
__device__ inline void multiply_add(float (&sums)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    DSTUNE_FROM_80(
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1)));
  } else {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
        "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#elif __CUDA_ARCH__ >= 750
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};\n"
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%7, %8}, {%9}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0), "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
  }
}

/// Copies 4 or 16 bytes, aligned to as many, from global to shared memory, or zeros if not
/// `exists`. They are there after wait_for_copies(), and for other threads after a barrier too.
/// GPUs before 8.0 copy at once.
template <int kBytes>
__device__ inline void copy_async(void* to, const void* from, bool exists) {
  static_assert(kBytes == 4 || kBytes == 16);
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  const int count = exists ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(count)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(count)
                 : "memory");
  }
#else
  using Value = std::conditional_t<kBytes == 16, uint4, float>;
  *static_cast<Value*>(to) = exists ? *static_cast<const Value*>(from) : Value{};
#endif
}

__device__ inline void wait_for_copies() {
  DSTUNE_FROM_80(asm volatile("cp.async.wait_all;" ::: "memory"));
}

/// 2^x within 2 units in the last place; results below 2^-126 are 0.
__device__ inline float exp2_fast(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

}  // namespace dstune::cuda

#undef DSTUNE_FROM_75
#undef DSTUNE_FROM_80
