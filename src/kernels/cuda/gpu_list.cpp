#include "kernels/cuda/gpu_list.hpp"

#include <array>
#include <cstdio>

#include <cuda_runtime_api.h>

#include "core/base/text.hpp"

namespace dstune::cuda {

namespace {

std::string id_of(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += digits.data();
  }
  return text;
}

std::string reason_of(cudaError_t error) {
  (void)cudaGetLastError();  // or the next check would meet it again
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
      return "no NVIDIA driver is installed";
    }
  }
  return concat("no GPU is usable: ", cudaGetErrorString(error));
}

}  // namespace

GpuList list_gpus() {
  GpuList list;
  int count = 0;
  if (const auto error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    list.problem = reason_of(error);
    return list;
  }
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties{};
    if (const auto error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
      return {{}, concat("GPU ", index, ": ", reason_of(error))};
    }
    list.gpus.push_back({properties.name, id_of(properties.uuid), properties.totalGlobalMem});
  }
  if (list.gpus.empty()) list.problem = "no GPU is visible (CUDA_VISIBLE_DEVICES?)";
  return list;
}

int own_gpu(int local_rank, int count) { return local_rank < 0 ? 0 : local_rank % count; }

}  // namespace dstune::cuda
