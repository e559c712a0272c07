#include "kernels/cuda/cuda_info.hpp"

#include <cuda_runtime_api.h>

#include "core/base/text.hpp"
#include "core/base/units.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

// CUDA's version numbers are 1000 * major + 10 * minor.
std::string version_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

std::string libraries() {
  int driver = 0;
  int runtime = 0;
  int nccl = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (nccl_library().problem.empty()) cuda::nccl().GetVersion(&nccl);
  return concat("driver for CUDA ", version_text(driver), ", CUDA runtime ", version_text(runtime),
                ", NCCL ", nccl / 10000, ".", nccl % 10000 / 100, ".", nccl % 100);
}

}  // namespace

std::vector<std::string> gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) return {};
  std::vector<std::string> result;
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) continue;
    result.push_back(
        concat(properties.name, ", ", format_bytes(static_cast<Bytes>(properties.totalGlobalMem))));
  }
  return result;
}

std::string why_unavailable() {
  const auto found = gpus();
  const std::string present =
      found.empty() ? "no GPU is usable here" : concat("this machine has ", join(found, "; "));
  return concat("this version has no CUDA training backend (", present, "; ", libraries(), ")");
}

}  // namespace dstune::cuda
