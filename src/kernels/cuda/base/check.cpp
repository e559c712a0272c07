#include "kernels/cuda/base/check.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/base/text.hpp"
#include "core/device/memory/memory_budget.hpp"

namespace dstune::cuda {

// The errors of which driver_types.h says that the process must be terminated and relaunched, and
// those after which nothing is known or no context is left.
bool is_sticky(cudaError_t error) noexcept {
  constexpr std::array kSticky = {cudaErrorDeviceUninitialized,
                                  cudaErrorECCUncorrectable,
                                  cudaErrorNvlinkUncorrectable,
                                  cudaErrorContained,
                                  cudaErrorIllegalAddress,
                                  cudaErrorLaunchTimeout,
                                  cudaErrorAssert,
                                  cudaErrorHardwareStackError,
                                  cudaErrorIllegalInstruction,
                                  cudaErrorMisalignedAddress,
                                  cudaErrorInvalidAddressSpace,
                                  cudaErrorInvalidPc,
                                  cudaErrorContextIsDestroyed,
                                  cudaErrorLaunchFailure,
                                  cudaErrorTensorMemoryLeak,
                                  cudaErrorMpsClientTerminated,
                                  cudaErrorExternalDevice,
                                  cudaErrorUnknown};
  return std::find(kSticky.begin(), kSticky.end(), error) != kSticky.end();
}

void throw_out_of_memory(Bytes requested) {
  std::size_t free = 0;
  std::size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) cudaGetLastError();
  throw OutOfMemoryError(MemoryCategory::temporaries, requested, total - free, total);
}

// A launch that loads a kernel or needs more local memory takes memory too.
void check(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  if (error == cudaErrorMemoryAllocation) throw_out_of_memory(kUnknownSize);
  const std::string message = concat(call, ": ", cudaGetErrorName(error), " (",
                                     cudaGetErrorString(error), ") at ", file, ":", line);
  if (is_sticky(error)) throw DeviceLostError(message);
  throw CudaError(message);
}

}  // namespace dstune::cuda
