#include <stdexcept>

#include "core/device/operations/rotate.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

void CudaDevice::compute(const Rotate&) { throw std::logic_error("Rotate: not written"); }

}  // namespace dstune::cuda
