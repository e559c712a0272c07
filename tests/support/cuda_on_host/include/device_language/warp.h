// Shuffles and votes of a warp, on the host.
#pragma once
#pragma GCC system_header

#include <cstdint>
#include <type_traits>

// What only meets lanes touches no memory of the kernel's. Instrumented, it takes a fifth of the
// processor time of the tests of training under the thread sanitizer.
#ifdef __clang__
#define CUDA_ON_HOST_UNSEEN __attribute__((disable_sanitizer_instrumentation))
#else
#define CUDA_ON_HOST_UNSEEN
#endif

namespace cuda_on_host {

/// Meets the live lanes of `mask` and gives the value that lane `source` brought, counted in the
/// warp. Aborts if that lane did not come.
std::uint64_t warp_shuffle(unsigned mask, std::uint64_t value, int source);

/// Meets the live lanes of `mask`: a bit for each that brought true.
unsigned warp_ballot(unsigned mask, bool predicate);

/// This thread's lane.
int lane_id();

template <class T>
concept Shuffled = std::is_trivially_copyable_v<T> && sizeof(T) <= 8;

template <Shuffled T>
CUDA_ON_HOST_UNSEEN T shuffle(unsigned mask, T value, int source) {
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  bits = warp_shuffle(mask, bits, source);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/// Lane `other`, or one's own where that lies outside of the segment of `width` lanes.
CUDA_ON_HOST_UNSEEN inline int in_segment(int other, int width) {
  const int lane = lane_id();
  return (other & ~(width - 1)) == (lane & ~(width - 1)) ? other : lane;
}

}  // namespace cuda_on_host

template <class T>
CUDA_ON_HOST_UNSEEN T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const int segment = cuda_on_host::lane_id() & ~(width - 1);
  return cuda_on_host::shuffle(mask, value, segment + (source & (width - 1)));
}

template <class T>
CUDA_ON_HOST_UNSEEN T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int source = cuda_on_host::in_segment(cuda_on_host::lane_id() - static_cast<int>(delta), width);
  return cuda_on_host::shuffle(mask, value, source);
}

template <class T>
CUDA_ON_HOST_UNSEEN T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int source = cuda_on_host::in_segment(cuda_on_host::lane_id() + static_cast<int>(delta), width);
  return cuda_on_host::shuffle(mask, value, source);
}

/// A lane may read from an earlier segment, not from a later one.
template <class T>
CUDA_ON_HOST_UNSEEN T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  const int lane = cuda_on_host::lane_id();
  const int other = lane ^ lane_mask;
  return cuda_on_host::shuffle(mask, value, other < (lane & ~(width - 1)) + width ? other : lane);
}

inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return cuda_on_host::warp_ballot(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0 ? 1 : 0; }
inline int __all_sync(unsigned mask, int predicate) {
  return __ballot_sync(mask, predicate == 0 ? 1 : 0) == 0 ? 1 : 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffU) { cuda_on_host::warp_ballot(mask, false); }
