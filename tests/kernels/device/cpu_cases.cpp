#include <cstring>

#include "kernels/cpu/cpu_device.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing {

namespace {

void copy_bytes(const void* from, void* to, std::size_t size) {
  if (size > 0) std::memcpy(to, from, size);
}

}  // namespace

std::vector<DeviceCase> device_cases() {
  return {{"cpu", [](Bytes limit) { return std::make_unique<cpu::CpuDevice>(limit); }, copy_bytes,
           copy_bytes}};
}

}  // namespace dstune::testing
