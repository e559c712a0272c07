// Memory of devices and pinned memory of the host, copies and fills.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/fault.hpp"
#include "tests/support/cuda_on_host/include/cuda_runtime_api.h"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/memory_guard.hpp"
#include "tests/support/cuda_on_host/stream.hpp"

namespace cuda_on_host {
namespace {

constexpr std::size_t kAlignment = 512;

std::atomic<bool>& poisons() {
  static std::atomic<bool> on = std::getenv("CUDA_ON_HOST_POISON") != nullptr;
  return on;
}

void* take_unguarded(std::size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, kAlignment, bytes) == 0 ? memory : nullptr;
}

cudaError_t allocate(void** pointer, std::size_t bytes) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const int index = current_device();
  const Locked locked;
  DeviceState& device = state().devices.at(static_cast<std::size_t>(index));
  if (bytes > state().machine.bytes - device.used) return cudaErrorMemoryAllocation;
  const bool is_guarded = guards_memory();
  *pointer = is_guarded ? take_guarded(bytes) : take_unguarded(bytes);
  if (*pointer == nullptr) return cudaErrorMemoryAllocation;
  device.used += bytes;
  state().allocations[*pointer] = {index, bytes, is_guarded};
  poison(*pointer, bytes);
  return cudaSuccess;
}

/// Waits for the device, as CUDA does.
cudaError_t deallocate(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  Allocation freed;
  {
    const Locked locked;
    const auto found = state().allocations.find(pointer);
    if (found == state().allocations.end()) return cudaErrorInvalidValue;
    freed = found->second;
    state().devices.at(static_cast<std::size_t>(freed.device)).used -= freed.bytes;
    state().allocations.erase(found);
  }
  synchronise_device(freed.device);
  if (freed.is_guarded) {
    give_back_guarded(pointer, freed.bytes);
  } else {
    std::free(pointer);
  }
  return cudaSuccess;
}

cudaError_t allocate_host(void** pointer, std::size_t bytes) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (posix_memalign(pointer, kAlignment, bytes) != 0) return cudaErrorMemoryAllocation;
  const Locked locked;
  state().host_allocations[*pointer] = bytes;
  return cudaSuccess;
}

cudaError_t deallocate_host(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  {
    const Locked locked;
    if (state().host_allocations.erase(pointer) == 0) return cudaErrorInvalidValue;
  }
  synchronise_device(current_device());
  std::free(pointer);
  return cudaSuccess;
}

template <class Blocks, class Bytes>
bool holds(const Blocks& blocks, const void* pointer, Bytes bytes_of) {
  const auto next = blocks.upper_bound(const_cast<void*>(pointer));
  if (next == blocks.begin()) return false;
  const auto& [start, block] = *std::prev(next);
  return static_cast<const char*>(pointer) < static_cast<const char*>(start) + bytes_of(block);
}

bool is_device(const void* pointer) {
  return holds(state().allocations, pointer,
               [](const Allocation& allocation) { return allocation.bytes; }) ||
         holds(state().ranges, pointer,
               [](const AddressRange& range) { return range.is_accessible ? range.bytes : 0; });
}

bool is_pinned(const void* pointer) {
  return holds(state().host_allocations, pointer, [](std::size_t bytes) { return bytes; });
}

/// A copy from or to pageable memory is over when the call returns, as CUDA's (mostly).
bool is_pageable(const void* pointer) {
  const Locked locked;
  return !is_device(pointer) && !is_pinned(pointer);
}

/// Whether the pointers are what the kind says.
bool matches(const void* dst, const void* src, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return true;
  const Locked locked;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return is_device(dst) == to_device && is_device(src) == from_device;
}

}  // namespace

void poison_memory(bool on) { poisons() = on; }

void poison(void* memory, std::size_t bytes) {
  if (!poisons()) return;
  const RunsAs device(Side::device);
  std::memset(memory, 0xff, bytes);
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaMalloc(void** devPtr, size_t size) {
  return call("cudaMalloc", [&] { return allocate(devPtr, size); });
}

cudaError_t cudaFree(void* devPtr) {
  return releasing_call("cudaFree", [&] { return deallocate(devPtr); });
}

cudaError_t cudaHostAlloc(void** pHost, size_t size, unsigned int /*flags*/) {
  return call("cudaHostAlloc", [&] { return allocate_host(pHost, size); });
}

cudaError_t cudaMallocHost(void** ptr, size_t size) {
  return call("cudaMallocHost", [&] { return allocate_host(ptr, size); });
}

cudaError_t cudaFreeHost(void* ptr) {
  return releasing_call("cudaFreeHost", [&] { return deallocate_host(ptr); });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  return call("cudaMemGetInfo", [&] {
    const Locked locked;
    *total = state().machine.bytes;
    *free = *total - state().devices.at(static_cast<std::size_t>(current_device())).used;
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&] {
    require_stream(stream);
    if (!matches(dst, src, kind)) return cudaErrorInvalidValue;
    enqueue(stream, "cudaMemcpyAsync", [=] {
      if (count > 0) std::memmove(dst, src, count);
    });
    if (is_pageable(dst) || is_pageable(src)) synchronise(stream);
    return cudaSuccess;
  });
}

/// On the host's thread: the streams of this project do not wait for the default stream.
cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&] {
    if (!matches(dst, src, kind)) return cudaErrorInvalidValue;
    const RunsAs device(Side::device);
    if (count > 0) std::memmove(dst, src, count);
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] {
    enqueue(stream, "cudaMemsetAsync", [=] {
      if (count > 0) std::memset(devPtr, value, count);
    });
    return cudaSuccess;
  });
}

cudaError_t cudaMemset(void* devPtr, int value, size_t count) {
  return call("cudaMemset", [&] {
    const RunsAs device(Side::device);
    if (count > 0) std::memset(devPtr, value, count);
    return cudaSuccess;
  });
}
