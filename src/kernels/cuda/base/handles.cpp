#include "kernels/cuda/base/handles.hpp"

#include "core/base/text.hpp"
#include "kernels/cuda/base/check.hpp"

namespace dstune::cuda {

StreamHandle make_stream() {
  cudaStream_t stream = nullptr;
  DSTUNE_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return StreamHandle(stream);
}

EventHandle make_event() {
  cudaEvent_t event = nullptr;
  DSTUNE_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDefault));
  return EventHandle(event);
}

EventHandle make_untimed_event() {
  cudaEvent_t event = nullptr;
  DSTUNE_CUDA_CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return EventHandle(event);
}

DeviceMemory make_device_memory(Bytes size) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, size);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw_out_of_memory(size);
  }
  DSTUNE_CUDA_CHECK(error);
  return DeviceMemory(data);
}

DeviceSpace device_space() {
  std::size_t free = 0;
  std::size_t total = 0;
  DSTUNE_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return {free, total};
}

// CUDA has the same error for this as for the GPU's memory.
PinnedMemory make_pinned_memory(Bytes size) {
  void* data = nullptr;
  const cudaError_t error = cudaHostAlloc(&data, size, cudaHostAllocDefault);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw CudaError(concat("cudaHostAlloc: no ", format_bytes(size), " of pinned host memory"));
  }
  DSTUNE_CUDA_CHECK(error);
  return PinnedMemory(data);
}

}  // namespace dstune::cuda
