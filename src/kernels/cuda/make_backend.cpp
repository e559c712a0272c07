#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "kernels/cuda/collectives/share_gpu.hpp"
#include "kernels/cuda/cuda_backend.hpp"
#include "kernels/cuda/cuda_info.hpp"
#include "kernels/cuda/gpu_list.hpp"
#include "kernels/cuda/own_gpu.hpp"

namespace dstune::cuda {

std::unique_ptr<Backend> make_backend(const Placement& placement) {
  const std::string reason = why_unavailable();
  if (!reason.empty()) throw Error(concat("backend cuda: ", reason));
  prepare_shared_gpu(placement);
  const int seen = static_cast<int>(list_gpus().gpus.size());
  return std::make_unique<CudaBackend>(own_gpu(placement.local_rank, seen), has_peers(placement));
}

}  // namespace dstune::cuda
