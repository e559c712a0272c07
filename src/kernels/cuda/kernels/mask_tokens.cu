#include <stdexcept>

#include "core/device/operations/mask_tokens.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

void CudaDevice::compute(const MaskTokens&) { throw std::logic_error("MaskTokens: not written"); }

}  // namespace dstune::cuda
