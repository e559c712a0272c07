// Owners of what the CUDA run time hands out.
#pragma once

#include <cuda_runtime_api.h>

#include "core/base/unique_handle.hpp"
#include "core/base/units.hpp"
#include "core/device/memory/memory_budget.hpp"

namespace dstune::cuda {

struct StreamTraits {
  using Handle = cudaStream_t;
  static Handle null() noexcept { return nullptr; }
  static void close(Handle stream) noexcept { cudaStreamDestroy(stream); }
};
using StreamHandle = UniqueHandle<StreamTraits>;

struct EventTraits {
  using Handle = cudaEvent_t;
  static Handle null() noexcept { return nullptr; }
  static void close(Handle event) noexcept { cudaEventDestroy(event); }
};
using EventHandle = UniqueHandle<EventTraits>;

struct DeviceMemoryTraits {
  using Handle = void*;
  static Handle null() noexcept { return nullptr; }
  static void close(Handle data) noexcept { cudaFree(data); }
};
using DeviceMemory = UniqueHandle<DeviceMemoryTraits>;

struct PinnedMemoryTraits {
  using Handle = void*;
  static Handle null() noexcept { return nullptr; }
  static void close(Handle data) noexcept { cudaFreeHost(data); }
};
using PinnedMemory = UniqueHandle<PinnedMemoryTraits>;

/// Memory of the GPU, whoever uses it.
struct DeviceSpace {
  Bytes free = 0;
  Bytes total = 0;
};
/// @throws CudaError, DeviceLostError
DeviceSpace device_space();

/// A stream that waits for no other by itself.
/// @throws CudaError, DeviceLostError  as all of these
StreamHandle make_stream();
/// An event with a time.
EventHandle make_event();
/// An event that is only waited for.
EventHandle make_untimed_event();
/// @throws OutOfMemoryError  too: the GPU itself is full
DeviceMemory make_device_memory(Bytes size);
/// Memory of the host; if none is left, that is a CudaError.
PinnedMemory make_pinned_memory(Bytes size);

}  // namespace dstune::cuda
