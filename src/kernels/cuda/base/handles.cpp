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
  DSTUNE_CUDA_CHECK(cudaMalloc(&data, size));
  return DeviceMemory(data);
}

PinnedMemory make_pinned_memory(Bytes size) {
  void* data = nullptr;
  DSTUNE_CUDA_CHECK(cudaHostAlloc(&data, size, cudaHostAllocDefault));
  return PinnedMemory(data);
}

}  // namespace dstune::cuda
