// Devices and what they are.
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "tests/support/cuda_on_host/architecture.hpp"
#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/include/cuda_runtime_api.h"
#include "tests/support/cuda_on_host/machine_state.hpp"

namespace cuda_on_host {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kL2 = 50 << 20;

bool exists(int device) {
  const Locked locked;
  return device >= 0 && device < state().machine.devices;
}

Machine machine() {
  const Locked locked;
  return state().machine;
}

void describe(cudaDeviceProp& prop, int device) {
  const Machine known = machine();
  const Architecture& limits = architecture_of(known.major, known.minor);
  prop = {};
  std::snprintf(prop.name, sizeof prop.name, "%s", known.name.c_str());
  const bool is_instance = known.name.find(" MIG ") != std::string::npos;
  prop.uuid.bytes[15] = static_cast<char>(is_instance ? 1 : device + 1);
  prop.totalGlobalMem = known.bytes;
  prop.sharedMemPerBlock = kSharedOfEveryBlock;
  prop.sharedMemPerBlockOptin = limits.shared_of_block;
  prop.sharedMemPerMultiprocessor = limits.shared_of_multiprocessor;
  prop.regsPerBlock = prop.regsPerMultiprocessor = 65536;
  prop.warpSize = 32;
  prop.maxThreadsPerBlock = prop.maxThreadsDim[0] = prop.maxThreadsDim[1] = kMaxThreads;
  prop.maxThreadsDim[2] = 64;
  prop.maxGridSize[0] = 0x7fffffff;
  prop.maxGridSize[1] = prop.maxGridSize[2] = 65535;
  prop.major = known.major;
  prop.minor = known.minor;
  prop.multiProcessorCount = known.multiprocessors;
  prop.pciBusID = device + 1;
  prop.memoryBusWidth = 5120;
  prop.l2CacheSize = kL2;
  prop.maxThreadsPerMultiProcessor = limits.threads_of_multiprocessor;
  prop.maxBlocksPerMultiProcessor = limits.blocks_of_multiprocessor;
}

cudaError_t attribute(int* value, cudaDeviceAttr attr, int device) {
  const Machine known = machine();
  const Architecture& limits = architecture_of(known.major, known.minor);
  const std::map<cudaDeviceAttr, int> values{
      {cudaDevAttrMaxThreadsPerBlock, kMaxThreads},
      {cudaDevAttrMaxSharedMemoryPerBlock, int{kSharedOfEveryBlock}},
      {cudaDevAttrWarpSize, 32},
      {cudaDevAttrClockRate, 1'980'000},
      {cudaDevAttrMultiProcessorCount, known.multiprocessors},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrComputeMode, 0},
      {cudaDevAttrConcurrentKernels, 1},
      {cudaDevAttrPciBusId, device + 1},
      {cudaDevAttrPciDeviceId, 0},
      {cudaDevAttrPciDomainId, 0},
      {cudaDevAttrMemoryClockRate, 2'619'000},
      {cudaDevAttrGlobalMemoryBusWidth, 5120},
      {cudaDevAttrL2CacheSize, kL2},
      {cudaDevAttrMaxThreadsPerMultiProcessor, limits.threads_of_multiprocessor},
      {cudaDevAttrComputeCapabilityMajor, known.major},
      {cudaDevAttrComputeCapabilityMinor, known.minor},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor,
       static_cast<int>(limits.shared_of_multiprocessor)},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, static_cast<int>(limits.shared_of_block)},
  };
  const auto found = values.find(attr);
  if (found == values.end()) return cudaErrorInvalidValue;
  *value = found->second;
  return cudaSuccess;
}

}  // namespace
}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&] {
    *count = machine().devices;
    return *count == 0 ? cudaErrorNoDevice : cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    current_device() = device;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&] {
    *device = current_device();
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  return call("cudaGetDeviceProperties", [&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    describe(*prop, device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
  return call("cudaDeviceGetAttribute", [&] {
    return exists(device) ? attribute(value, attr, device) : cudaErrorInvalidDevice;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  return call("cudaDeviceGetPCIBusId", [&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    std::snprintf(pciBusId, static_cast<std::size_t>(len), "0000:%02x:00.0",
                  static_cast<unsigned>(device + 1));
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return call("cudaDeviceGetStreamPriorityRange", [&] {
    *leastPriority = 0;
    *greatestPriority = -5;
    return cudaSuccess;
  });
}

/// Works without a driver, which then has version 0, and after a sticky error.
cudaError_t cudaDriverGetVersion(int* driverVersion) {
  begin_call("cudaDriverGetVersion");
  *driverVersion = machine().driver ? machine().driver_version : 0;
  return cudaSuccess;
}
