#include "core/device/operations/activate.hpp"

#include <stdexcept>

#include "kernels/cpu/cpu_device.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const Activate&) { throw std::logic_error("Activate: not written"); }
void CpuDevice::compute(const ActivateBackward&) {
  throw std::logic_error("ActivateBackward: not written");
}
void CpuDevice::compute(const Multiply&) { throw std::logic_error("Multiply: not written"); }

}  // namespace dstune::cpu
