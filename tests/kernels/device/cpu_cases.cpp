#include <cstring>

#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cpu/products/onednn.hpp"
#include "tests/kernels/device/device_test.hpp"

namespace dstune::testing {

namespace {

void copy_bytes(const void* from, void* to, std::size_t size) {
  if (size > 0) std::memcpy(to, from, size);
}

std::unique_ptr<Device> make_with_onednn(Bytes limit) {
  auto device = std::make_unique<cpu::CpuDevice>(limit);
  device->products().use_onednn({.fp32 = true, .bf16 = true}, 1);
  return device;
}

}  // namespace

std::vector<DeviceCase> device_cases() {
  std::vector<DeviceCase> cases = {
      {"cpu", [](Bytes limit) { return std::make_unique<cpu::CpuDevice>(limit); }, copy_bytes,
       copy_bytes}};
  if (cpu::Onednn::is_there()) {
    cases.push_back({"cpu_with_onednn", make_with_onednn, copy_bytes, copy_bytes});
  }
  return cases;
}

}  // namespace dstune::testing
