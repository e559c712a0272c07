#include "bench/gpu/choose_device.hpp"

#include "kernels/backends.hpp"

namespace dstune::bench {

namespace {

// What is left is for libraries, and for what is measured beside the device.
constexpr Bytes kLeft = Bytes{1} << 30U;

Bytes most_memory_of(const std::string& backend) {
  for (const DeviceInfo& info : describe_devices()) {
    if (info.backend == backend && info.free_memory > 2 * kLeft) return info.free_memory - kLeft;
  }
  return kLeft;
}

}  // namespace

ChosenDevice::ChosenDevice(const std::string& backend, int threads)
    : backend_(make_backend(backend)),
      device_(&backend_->device({.memory_limit = most_memory_of(backend), .threads = threads})) {}

}  // namespace dstune::bench
