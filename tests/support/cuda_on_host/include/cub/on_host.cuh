// What the stand-ins of CUB's algorithms share. Each is one launch of one thread, which the
// streams' order and injected faults meet as any other.
#pragma once
#pragma GCC system_header

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <cuda_runtime.h>

namespace cub::on_host {

/// Temporary storage that an algorithm asks for; it is overwritten, as it may be on a GPU.
inline constexpr std::size_t kTemporaryBytes = std::size_t{64} << 10U;

inline void spoil(void* storage) { std::memset(storage, 0xa5, kTemporaryBytes); }

/// CUB's way of being called: without storage it says what it needs, with too little it fails.
template <class... Parameters, class... Arguments>
cudaError_t run(void* storage, std::size_t& bytes, cudaStream_t stream,
                void (*kernel)(void*, Parameters...), Arguments&&... arguments) {
  if (storage == nullptr) {
    bytes = kTemporaryBytes;
    return cudaSuccess;
  }
  if (bytes < kTemporaryBytes) return cudaErrorInvalidValue;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, storage, std::forward<Arguments>(arguments)...);
}

/// f over in[first .. end) and `none`, by some lanes that take turns, or long sums of fp32 would
/// lose what a GPU's do not.
template <class T, class Input, class F>
T reduce(const Input& in, std::int64_t first, std::int64_t end, const F& f, T none) {
  constexpr std::int64_t kLanes = 256;
  T lanes[kLanes];
  for (T& lane : lanes) lane = none;
  for (std::int64_t i = first; i < end; ++i) {
    T& lane = lanes[(i - first) % kLanes];
    lane = f(lane, static_cast<T>(in[i]));
  }
  T all = none;
  for (const T& lane : lanes) all = f(all, lane);
  return all;
}

}  // namespace cub::on_host
