#include "core/device/operations/rms_norm.hpp"

#include <stdexcept>

#include "kernels/cpu/cpu_device.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const RmsNorm&) { throw std::logic_error("RmsNorm: not written"); }
void CpuDevice::compute(const RmsNormBackward&) {
  throw std::logic_error("RmsNormBackward: not written");
}

}  // namespace dstune::cpu
