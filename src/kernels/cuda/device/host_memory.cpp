// Tensors in the host's memory, beside a GPU: where they lie, and their way there and back.
#include <cstdlib>

#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/host/nvme/swap_file.hpp"

namespace dstune::cuda {

namespace {

constexpr Bytes kAlignment = 64;

}  // namespace

// The exact size is pinned: that PyTorch rounds it up is an account of HostMemory.
void* CudaDevice::do_allocate_on_host(Tier tier, MemoryCategory category, Bytes size) {
  if (tier == Tier::locked) {
    return host::allocate_locked(category, size, host_memory().held() - size,
                                 host_memory().limit());
  }
  void* data = nullptr;
  std::string refusal = "malloc gave nothing";
  if (tier == Tier::pinned) {
    const cudaError_t error = cudaHostAlloc(&data, size, cudaHostAllocDefault);
    if (error != cudaSuccess) {
      cudaGetLastError();
      if (error != cudaErrorMemoryAllocation) DSTUNE_CUDA_CHECK(error);
      data = nullptr;
      refusal = cudaGetErrorString(error);
    }
  } else {
    data = std::aligned_alloc(kAlignment, (size + kAlignment - 1) / kAlignment * kAlignment);
  }
  if (data != nullptr) return data;
  throw OutOfMemoryError(category, size, host_memory().held() - size, host_memory().limit(), 0,
                         refusal, tier);
}

void CudaDevice::do_free_on_host(Tier tier, void* data, Bytes size) noexcept {
  if (tier == Tier::locked) {
    host::free_locked(data, size);
  } else if (tier == Tier::pinned) {
    cudaFreeHost(data);
  } else {
    std::free(data);  // NOLINT(cppcoreguidelines-no-malloc): of aligned_alloc
  }
}

void CudaDevice::do_transfer(const HostTransfer& copy) {
  const cudaMemcpyKind kind =
      copy.direction == Transfer::device_to_host ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
  DSTUNE_CUDA_CHECK(
      cudaMemcpyAsync(copy.to.data, copy.from.data, copy.from.size(), kind, stream()));
}

std::unique_ptr<DriveFile> CudaDevice::open_drive_file(const std::string& directory) {
  return host::make_swap_file(directory, [this] { meanwhile(); });
}

host::Threads& CudaDevice::host_team() {
  if (!host_team_) host_team_ = std::make_unique<host::Threads>(threads_);
  return *host_team_;
}

}  // namespace dstune::cuda
