#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "kernels/cuda/cuda_info.hpp"

namespace dstune::cuda {

DeviceInfo describe_device() {
  DeviceInfo info;
  info.backend = "cuda";
  info.name = join(gpus(), "; ");
  info.unusable = why_unavailable();
  return info;
}

std::unique_ptr<Backend> make_backend() {
  throw Error(concat("backend cuda: ", why_unavailable()));
}

}  // namespace dstune::cuda
