// What a GPU does at most: measured once per type, in memory of its own.
#include <algorithm>
#include <stdexcept>

#include "core/device/rates/device_peaks.hpp"
#include "kernels/cuda/base/handles.hpp"
#include "kernels/cuda/device/cuda_device.hpp"

namespace dstune::cuda {
namespace {

// Three matrices of 8192 x 8192 in 16 bits.
constexpr Bytes kEnough = Bytes{384} << 20U;

// One rank alone may find no room: the experiment goes on without.
std::optional<DevicePeaks> measure_apart(Device& device, DType dtype) {
  const Bytes size = std::min(kEnough, device_space().free / 2);
  try {
    const DeviceMemory memory = make_device_memory(size);
    return measure_peaks(device, dtype, memory.get(), size);
  } catch (const OutOfMemoryError&) {
    return std::nullopt;
  }
}

}  // namespace

// No budget counts what is taken here, so that the experiment finds the device as it would be.
std::optional<DevicePeaks> CudaDevice::peaks(DType dtype) {
  auto& known = gpu_.known_peaks();
  const auto found = known.find(dtype);
  if (found != known.end()) return found->second;
  if (gpu_.in_use() > 0) throw std::logic_error("peaks: memory is in use");
  gpu_.release_memory();
  return known[dtype] = measure_apart(*this, dtype);
}

}  // namespace dstune::cuda
