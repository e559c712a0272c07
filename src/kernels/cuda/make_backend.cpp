#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "kernels/cuda/collectives/share_gpu.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "kernels/cuda/cuda_info.hpp"

namespace dstune::cuda {

std::unique_ptr<Backend> make_backend(const Placement& placement) {
  const std::string reason = why_unavailable();
  if (!reason.empty()) throw Error(concat("backend cuda: ", reason));
  prepare_shared_gpu(placement);
  return std::make_unique<CudaBackend>(describe_device(placement).index);
}

}  // namespace dstune::cuda
