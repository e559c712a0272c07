#include "core/device/operations/gemm.hpp"

#include <cassert>

#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {

void CudaDevice::compute(const Gemm& op) {
  assert(op.a.dtype == op.b.dtype && (op.c.dtype == op.b.dtype || op.c.dtype == DType::fp32));
  assert(op.beta == 0 || op.beta == 1);
  assert(!op.bias || (op.bias->dtype == op.c.dtype && op.bias->numel == op.c.cols));
  products_.run(op, stream());
}

}  // namespace dstune::cuda
