#include "kernels/cuda/base/handles.hpp"

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

DeviceMemory make_device_memory(Bytes size) {
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, size);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    const DeviceSpace space = device_space();
    throw OutOfMemoryError(MemoryCategory::temporaries, size, space.total - space.free,
                           space.total);
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

PinnedMemory make_pinned_memory(Bytes size) {
  void* data = nullptr;
  DSTUNE_CUDA_CHECK(cudaHostAlloc(&data, size, cudaHostAllocDefault));
  return PinnedMemory(data);
}

}  // namespace dstune::cuda
