#include "core/device/operations/mask_tokens.hpp"

#include <stdexcept>

#include "kernels/cpu/cpu_device.hpp"

namespace dstune::cpu {

void CpuDevice::compute(const MaskTokens&) { throw std::logic_error("MaskTokens: not written"); }

}  // namespace dstune::cpu
