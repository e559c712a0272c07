#include "tests/support/cuda_on_host/loading.hpp"

#include <string>
#include <vector>

#include "tests/support/cuda_on_host/kernel_name.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/stream.hpp"

namespace cuda_on_host {
namespace {

DeviceState& device_state(int device) {
  return state().devices.at(static_cast<std::size_t>(device));
}

}  // namespace

cudaError_t load(const void* kernel) {
  const int index = current_device();
  std::size_t bytes = 0;
  {
    const Locked locked;
    DeviceState& device = device_state(index);
    if (device.kernels.contains(kernel)) return cudaSuccess;
    bytes = state().machine.kernel_bytes;
    if (bytes > state().machine.bytes - device.used) return cudaErrorMemoryAllocation;
    device.used += bytes;
    device.kernels.insert(kernel);
    device.loaded.push_back(kernel);
  }
  if (bytes > 0) drain_device(index);
  return cudaSuccess;
}

std::vector<std::string> loaded_kernels(int device) {
  std::vector<const void*> loaded;
  {
    const Locked locked;
    loaded = device_state(device).loaded;
  }
  std::vector<std::string> names;
  names.reserve(loaded.size());
  for (const void* kernel : loaded) names.push_back(kernel_name(kernel));
  return names;
}

}  // namespace cuda_on_host
