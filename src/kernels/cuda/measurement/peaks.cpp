// What a GPU does at most: measured once per type, in memory of its own.
#include <algorithm>
#include <stdexcept>

#include "core/device/device_peaks.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/base/handles.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {
namespace {

// Three matrices of 8192 x 8192 in 16 bits.
constexpr Bytes kEnough = Bytes{384} << 20U;

Bytes free_memory() {
  std::size_t free = 0;
  std::size_t all = 0;
  DSTUNE_CUDA_CHECK(cudaMemGetInfo(&free, &all));
  return free;
}

}  // namespace

// No budget counts what is taken here, so that the experiment finds the device as it would be.
std::optional<DevicePeaks> CudaDevice::peaks(DType dtype) {
  auto& known = gpu_.known_peaks();
  const auto found = known.find(dtype);
  if (found != known.end()) return found->second;
  if (gpu_.in_use() > 0) throw std::logic_error("peaks: memory is in use");
  gpu_.release_memory();
  const Bytes size = std::min(kEnough, free_memory() / 2);
  const DeviceMemory memory = make_device_memory(size);
  return known[dtype] = measure_peaks(*this, dtype, memory.get(), size);
}

}  // namespace dstune::cuda
