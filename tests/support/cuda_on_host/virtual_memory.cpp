// The driver's virtual memory management: addresses are the host's, and whoever uses one that is
// not mapped, or has no access, ends as a wild pointer does.
#include <cstdint>

#include <sys/mman.h>

#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/include/cuda.h"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/memory_guard.hpp"
#include "tests/support/cuda_on_host/stream.hpp"

namespace cuda_on_host {
namespace {

constexpr std::size_t kPage = std::size_t{2} << 20U;

/// Of a function of the driver, whose errors have the numbers of the runtime's.
template <class Body>
CUresult driver_call(const char* function, Body body) {
  if (const auto error = begin_call(function)) return static_cast<CUresult>(error->code);
  return body();
}

/// Of one that frees: does so even if it returns an error.
template <class Body>
CUresult releasing_driver_call(const char* function, Body body) {
  const auto error = begin_call(function);
  const CUresult result = body();
  return error ? static_cast<CUresult>(error->code) : result;
}

char* at(CUdeviceptr address) { return reinterpret_cast<char*>(address); }

bool is_whole(std::size_t bytes) { return bytes > 0 && bytes % state().machine.page_bytes == 0; }

bool is_device(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && location.id >= 0 &&
         location.id < state().machine.devices;
}

bool is_possible(const CUmemAllocationProp& prop) {
  return prop.type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         prop.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE && is_device(prop.location);
}

/// Starts at a multiple of kPage, as CUDA's.
CUresult reserve(CUdeviceptr* begin, std::size_t bytes) {
  const Locked locked;
  if (!is_whole(bytes)) return CUDA_ERROR_INVALID_VALUE;
  void* const found =
      mmap(nullptr, bytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto first = reinterpret_cast<std::uintptr_t>(found);
  const std::size_t before = (kPage - first % kPage) % kPage;
  if (before > 0) munmap(found, before);
  munmap(at(first + before + bytes), kPage - before);
  *begin = first + before;
  state().ranges[at(*begin)] = {.bytes = bytes};
  return CUDA_SUCCESS;
}

AddressRange* find_range(CUdeviceptr begin, std::size_t bytes) {
  const auto found = state().ranges.find(at(begin));
  return found != state().ranges.end() && found->second.bytes == bytes ? &found->second : nullptr;
}

CUresult free_range(CUdeviceptr begin, std::size_t bytes) {
  const Locked locked;
  const AddressRange* const range = find_range(begin, bytes);
  if (range == nullptr || range->pages != 0) return CUDA_ERROR_INVALID_VALUE;
  munmap(at(begin), bytes);
  state().ranges.erase(at(begin));
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                const CUmemAllocationProp& prop) {
  const Locked locked;
  if (!is_whole(bytes) || !is_possible(prop)) return CUDA_ERROR_INVALID_VALUE;
  DeviceState& device = state().devices.at(static_cast<std::size_t>(prop.location.id));
  if (bytes > state().machine.bytes - device.used) return CUDA_ERROR_OUT_OF_MEMORY;
  device.used += bytes;
  *handle = ++state().last_pages;
  state().pages[*handle] = {.device = prop.location.id, .bytes = bytes};
  return CUDA_SUCCESS;
}

/// Pages that neither a handle nor a mapping holds are free.
void free_unless_held(CUmemGenericAllocationHandle handle) {
  const auto found = state().pages.find(handle);
  if (found->second.has_handle || found->second.mappings > 0) return;
  state().devices.at(static_cast<std::size_t>(found->second.device)).used -= found->second.bytes;
  state().pages.erase(found);
}

CUresult release(CUmemGenericAllocationHandle handle) {
  const Locked locked;
  const auto found = state().pages.find(handle);
  if (found == state().pages.end() || !found->second.has_handle) return CUDA_ERROR_INVALID_VALUE;
  found->second.has_handle = false;
  free_unless_held(handle);
  return CUDA_SUCCESS;
}

/// A whole range at a time, which is all that is used.
CUresult map(CUdeviceptr begin, std::size_t bytes, CUmemGenericAllocationHandle handle) {
  const Locked locked;
  AddressRange* const range = find_range(begin, bytes);
  const auto found = state().pages.find(handle);
  if (range == nullptr || range->pages != 0 || found == state().pages.end() ||
      !found->second.has_handle || found->second.bytes != bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  range->pages = handle;
  ++found->second.mappings;
  return CUDA_SUCCESS;
}

CUresult give_access(CUdeviceptr begin, std::size_t bytes, const CUmemAccessDesc& access) {
  const Locked locked;
  AddressRange* const range = find_range(begin, bytes);
  if (range == nullptr || range->pages == 0 || !is_device(access.location) ||
      access.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!open_pages(at(begin), bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  range->is_accessible = true;
  poison(at(begin), bytes);
  return CUDA_SUCCESS;
}

/// Waits for the device: CUDA says that this is synchronous for most uses.
CUresult unmap(CUdeviceptr begin, std::size_t bytes) {
  int device = 0;
  {
    const Locked locked;
    const AddressRange* const range = find_range(begin, bytes);
    if (range == nullptr || range->pages == 0) return CUDA_ERROR_INVALID_VALUE;
    device = state().pages.at(range->pages).device;
  }
  synchronise_device(device);
  const Locked locked;
  AddressRange& range = *find_range(begin, bytes);
  mmap(at(begin), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  const CUmemGenericAllocationHandle handle = range.pages;
  range = {.bytes = bytes};
  --state().pages.at(handle).mappings;
  free_unless_held(handle);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuda_on_host

using namespace cuda_on_host;

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return driver_call("cuDeviceGet", [&] {
    const Locked locked;
    if (ordinal < 0 || ordinal >= state().machine.devices) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
  return driver_call("cuDeviceGetUuid_v2", [&] {
    *uuid = {};
    uuid->bytes[0] = static_cast<char>(dev + 1);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice /*dev*/) {
  return driver_call("cuDeviceGetAttribute", [&] {
    const Locked locked;
    if (attrib != CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *pi = state().machine.virtual_memory ? 1 : 0;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp* prop,
                                       CUmemAllocationGranularity_flags /*option*/) {
  return driver_call("cuMemGetAllocationGranularity", [&] {
    const Locked locked;
    if (!is_possible(*prop)) return CUDA_ERROR_INVALID_VALUE;
    *granularity = state().machine.page_bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* ptr, std::size_t size, std::size_t /*alignment*/,
                             CUdeviceptr /*addr*/, unsigned long long /*flags*/) {
  return driver_call("cuMemAddressReserve", [&] { return reserve(ptr, size); });
}

CUresult cuMemAddressFree(CUdeviceptr ptr, std::size_t size) {
  return releasing_driver_call("cuMemAddressFree", [&] { return free_range(ptr, size); });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size,
                     const CUmemAllocationProp* prop, unsigned long long /*flags*/) {
  return driver_call("cuMemCreate", [&] { return create(handle, size, *prop); });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return releasing_driver_call("cuMemRelease", [&] { return release(handle); });
}

CUresult cuMemMap(CUdeviceptr ptr, std::size_t size, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long /*flags*/) {
  return driver_call(
      "cuMemMap", [&] { return offset == 0 ? map(ptr, size, handle) : CUDA_ERROR_INVALID_VALUE; });
}

CUresult cuMemUnmap(CUdeviceptr ptr, std::size_t size) {
  return releasing_driver_call("cuMemUnmap", [&] { return unmap(ptr, size); });
}

CUresult cuMemSetAccess(CUdeviceptr ptr, std::size_t size, const CUmemAccessDesc* desc,
                        std::size_t count) {
  return driver_call("cuMemSetAccess", [&] {
    return count == 1 ? give_access(ptr, size, *desc) : CUDA_ERROR_INVALID_VALUE;
  });
}
