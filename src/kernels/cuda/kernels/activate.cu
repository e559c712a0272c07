#include <stdexcept>

#include "core/device/operations/activate.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

void CudaDevice::compute(const Activate&) { throw std::logic_error("Activate: not written"); }
void CudaDevice::compute(const ActivateBackward&) {
  throw std::logic_error("ActivateBackward: not written");
}
void CudaDevice::compute(const Multiply&) { throw std::logic_error("Multiply: not written"); }

}  // namespace dstune::cuda
