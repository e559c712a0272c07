#include "core/device/operations/rotate.hpp"

#include <stdexcept>

#include "kernels/cpu/cpu_device.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const Rotate&) { throw std::logic_error("Rotate: not written"); }

}  // namespace dstune::cpu
