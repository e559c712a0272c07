#include "kernels/cuda/gpu_list.hpp"

#include <array>
#include <cstdio>

#include <cuda_runtime_api.h>

#include "core/base/text.hpp"
#include "kernels/cuda/libraries/driver.hpp"

namespace dstune::cuda {

namespace {

std::string id_of(std::string text, const cudaUUID_t& uuid) {
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x",
                  static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
    text += digits.data();
  }
  return text;
}

// An instance's own, where the run time may name the whole GPU.
cudaUUID_t uuid_of_instance(int index, const cudaUUID_t& otherwise) {
  CUdevice device = 0;
  CUuuid uuid{};
  const bool is_known = driver_library().problem.empty() &&
                        driver().DeviceGet(&device, index) == CUDA_SUCCESS &&
                        driver().DeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS;
  return is_known ? uuid : otherwise;
}

GpuInfo describe(const cudaDeviceProp& properties, int index) {
  const bool is_instance = is_mig_instance(properties.name);
  return {.name = properties.name,
          .id = is_instance ? id_of("MIG-", uuid_of_instance(index, properties.uuid))
                            : id_of("GPU-", properties.uuid),
          .memory = properties.totalGlobalMem,
          .capability = {properties.major, properties.minor},
          .is_mig_instance = is_instance};
}

std::string reason_of(cudaError_t error) {
  (void)cudaGetLastError();  // or the next check would meet it again
  if (error == cudaErrorInsufficientDriver) {
    int driver = 0;
    if (cudaDriverGetVersion(&driver) == cudaSuccess) {
      if (driver == 0) return "no NVIDIA driver is installed";
      const int built = this_compilation().cuda;
      return concat("the NVIDIA driver is for CUDA ", cuda_version_text(driver),
                    "; this program was built with CUDA ", cuda_version_text(built), ", which ",
                    least_driver(built) == 0 ? "needs a newer one" : needed_driver_text(built));
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
    list.gpus.push_back(describe(properties, index));
  }
  if (list.gpus.empty()) list.problem = "no GPU is visible (CUDA_VISIBLE_DEVICES?)";
  return list;
}

}  // namespace dstune::cuda
