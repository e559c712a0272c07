// Errors of the runtime and their names.
#include <utility>

#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/include/cuda_runtime_api.h"
#include "tests/support/cuda_on_host/machine_state.hpp"

namespace {

struct Description {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr Description kDescriptions[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const Description* find(cudaError_t error) {
  for (const Description& description : kDescriptions) {
    if (description.error == error) return &description;
  }
  return nullptr;
}

/// Of the device, if it has one: it cannot be cleared.
cudaError_t sticky_or(cudaError_t error) {
  const cuda_on_host::Locked locked;
  const auto device = static_cast<std::size_t>(cuda_on_host::current_device());
  const int sticky = cuda_on_host::state().devices.at(device).sticky_error;
  return sticky != 0 ? static_cast<cudaError_t>(sticky) : error;
}

}  // namespace

cudaError_t cudaGetLastError() {
  return sticky_or(std::exchange(cuda_on_host::last_error(), cudaSuccess));
}

cudaError_t cudaPeekAtLastError() { return sticky_or(cuda_on_host::last_error()); }

const char* cudaGetErrorName(cudaError_t error) {
  const Description* description = find(error);
  return description == nullptr ? "unrecognized error code" : description->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const Description* description = find(error);
  return description == nullptr ? "unrecognized error code" : description->text;
}
