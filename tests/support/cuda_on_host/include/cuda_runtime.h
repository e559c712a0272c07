// The CUDA runtime with its C++ templates and the device language, on the host.
#pragma once
#pragma GCC system_header

#include <functional>
#include <utility>

#include "cuda_runtime_api.h"
#include "device_language/qualifiers.h"
// The order of the rest is free.
#include "device_language/atomics.h"
#include "device_language/bits.h"
#include "device_language/mathematics.h"
#include "device_language/memory.h"
#include "device_language/synchronisation.h"
#include "device_language/thread_indexes.h"
#include "device_language/warp.h"

namespace cuda_on_host {

/// Checks the configuration as CUDA does and enqueues `thread` for every thread of the grid.
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::function<void()> thread);

}  // namespace cuda_on_host

template <class... ExpTypes, class... ActTypes>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(ExpTypes...),
                                      ActTypes&&... args) {
  return [&](ExpTypes... coerced) {
    return cuda_on_host::launch(*config, reinterpret_cast<const void*>(kernel),
                                [kernel, coerced...] { kernel(coerced...); });
  }(std::forward<ActTypes>(args)...);
}

template <class T>
inline cudaError_t cudaMalloc(T** devPtr, size_t size) {
  return ::cudaMalloc(reinterpret_cast<void**>(devPtr), size);
}

template <class T>
inline cudaError_t cudaMallocHost(T** ptr, size_t size, unsigned int flags = 0) {
  return ::cudaHostAlloc(reinterpret_cast<void**>(ptr), size, flags);
}

template <class T>
inline cudaError_t cudaHostAlloc(T** ptr, size_t size, unsigned int flags) {
  return ::cudaHostAlloc(reinterpret_cast<void**>(ptr), size, flags);
}

template <class T>
inline cudaError_t cudaFuncSetAttribute(T* func, cudaFuncAttribute attr, int value) {
  return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(func), attr, value);
}

template <class T>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attr, T* func) {
  return ::cudaFuncGetAttributes(attr, reinterpret_cast<const void*>(func));
}

template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, T func, int blockSize,
                                                                 size_t dynamicSMemSize) {
  return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, reinterpret_cast<const void*>(func), blockSize,
                                                         dynamicSMemSize);
}
