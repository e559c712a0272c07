// Stands in for the backend where CUDA is not built.
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "kernels/cuda/cuda_info.hpp"

namespace dstune::cuda {

std::vector<std::string> gpus() { return {}; }

std::vector<std::string> library_versions() { return {}; }

std::string why_unavailable() { return "this build has no CUDA"; }

DeviceInfo describe_device(const Placement& /*placement*/) {
  DeviceInfo info;
  info.backend = "cuda";
  info.unusable = why_unavailable();
  return info;
}

std::unique_ptr<Backend> make_backend(const Placement& /*placement*/) {
  throw Error(concat("backend cuda: ", why_unavailable()));
}

}  // namespace dstune::cuda
