#include "kernels/backend.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "kernels/cpu/cpu_device.hpp"
#include "kernels/cuda/cuda_info.hpp"
#include "kernels/sim/sim_device.hpp"

namespace dstune {

std::vector<std::string> available_backends() { return {"cpu", "sim"}; }

std::string resolve_backend(const std::string& backend) {
  const auto available = available_backends();
  if (backend == "auto") return available.front();
  if (backend == "cuda") throw Error(concat("backend cuda: ", cuda::why_unavailable()));
  if (std::find(available.begin(), available.end(), backend) == available.end()) {
    throw Error(
        concat("backend ", backend, " is unknown; accepted: auto, ", join(available, ", ")));
  }
  return backend;
}

std::unique_ptr<Device> make_device(const std::string& backend, Bytes memory_limit) {
  if (resolve_backend(backend) == "sim") return std::make_unique<sim::SimDevice>(memory_limit);
  return std::make_unique<cpu::CpuDevice>(memory_limit);
}

std::vector<std::string> describe_backends() {
  std::vector<std::string> lines = {concat("backends: ", join(available_backends(), ", "))};
  for (const auto& gpu : cuda::gpus()) {
    lines.push_back(concat("GPU (not used: no CUDA training backend): ", gpu));
  }
  return lines;
}

}  // namespace dstune
