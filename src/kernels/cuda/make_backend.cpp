#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "kernels/cuda/cuda_info.hpp"

namespace dstune::cuda {

std::unique_ptr<Backend> make_backend(const Placement& /*placement*/) {
  std::string reason = why_unavailable();
  if (reason.empty()) reason = "this version has no CUDA training backend";
  throw Error(concat("backend cuda: ", reason));
}

}  // namespace dstune::cuda
