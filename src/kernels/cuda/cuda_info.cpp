#include "kernels/cuda/cuda_info.hpp"

#include <utility>

#include <cuda_runtime_api.h>

#include "core/base/text.hpp"
#include "core/base/units.hpp"
#include "kernels/cuda/base/compiled_for.hpp"
#include "kernels/cuda/device/memory_probe.hpp"
#include "kernels/cuda/gemm/matrix_products.hpp"
#include "kernels/cuda/gpu_list.hpp"
#include "kernels/cuda/libraries/cublas_lt.hpp"
#include "kernels/cuda/libraries/cudnn_line.hpp"
#include "kernels/cuda/libraries/nccl.hpp"
#include "kernels/cuda/libraries/nccl_settings.hpp"
#include "kernels/cuda/own_gpu.hpp"

namespace dstune::cuda {

namespace {

constexpr int kFirstMajorWithBf16 = 8;  // of compute capabilities

std::string driver_line() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) return "CUDA driver: none";
  return concat("CUDA driver: for CUDA ", cuda_version_text(version));
}

std::string run_time_line() {
  const Compilation own = this_compilation();
  const std::string driver = needed_driver_text(own.cuda);
  return concat("CUDA run time: ", cuda_version_text(own.cuda), " (linked)",
                driver.empty() ? "" : ", ", driver);
}

std::string code_line() {
  return concat("CUDA code: for compute capability ",
                capabilities_text(this_compilation().architectures));
}

// What is free takes a context to know, which only those make who will train.
void measure_memory(const Placement& placement, DeviceInfo& info) {
  try {
    FreeMemory memory = probe_memory(info.index, has_peers(placement));
    info.free_memory = memory.free;
    info.reserves = std::move(memory.reserves);
  } catch (const Error& error) {
    info.unusable = error.what();
  }
}

}  // namespace

std::vector<std::string> gpus() {
  std::vector<std::string> lines;
  for (const GpuInfo& gpu : list_gpus().gpus) {
    lines.push_back(concat("GPU ", lines.size(), ": ", gpu.name, ", ", format_bytes(gpu.memory),
                           ", compute capability ", text_of(gpu.capability),
                           gpu.is_mig_instance ? ", MIG instance" : "", " (", gpu.id, ")"));
  }
  return lines;
}

std::vector<std::string> library_versions() {
  return {driver_line(),
          run_time_line(),
          code_line(),
          library_line("cuBLASLt", cublas_lt_library(), [] { return cublas_lt().GetVersion(); }),
          cudnn_line(),
          library_line("NCCL", nccl_library(), [] {
            int version = 0;
            nccl().GetVersion(&version);
            return static_cast<std::size_t>(version);
          })};
}

std::string why_unavailable() {
  const GpuList list = list_gpus();
  if (!list.problem.empty()) return list.problem;
  if (!cublas_lt_library().problem.empty()) return cublas_lt_library().problem;
  return nccl_library().problem;
}

DeviceInfo describe_device(const Placement& placement) {
  DeviceInfo info;
  info.backend = "cuda";
  info.unusable = why_unavailable();
  const auto found = list_gpus().gpus;
  if (found.empty()) return info;
  info.seen = static_cast<int>(found.size());
  info.index = own_gpu(placement.local_rank, info.seen);
  const GpuInfo& own = found[static_cast<std::size_t>(info.index)];
  info.name = own.name;
  info.id = own.id;
  info.memory = own.memory;
  info.free_memory = own.memory;
  info.is_mig_instance = own.is_mig_instance;
  info.trains_in_bf16 = own.capability.major >= kFirstMajorWithBf16;
  info.product_workspace = {cublas_workspace(own.capability.major), kBiasWorkspace};
  info.limit_is_free_memory = true;
  const Compilation compilation = this_compilation();
  if (info.unusable.empty() && !have_code_for(compilation.architectures, own.capability)) {
    info.unusable = lack_of_code(compilation, own.name, own.capability);
  }
  if (info.unusable.empty()) info.common = nccl_settings();
  if (!placement.is_worker || !info.unusable.empty()) return info;
  info.found = library_versions();
  measure_memory(placement, info);
  return info;
}

}  // namespace dstune::cuda
