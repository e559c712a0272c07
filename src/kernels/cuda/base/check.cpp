#include "kernels/cuda/base/check.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/text.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "kernels/cuda/base/compiled_for.hpp"

namespace dstune::cuda {

namespace {

// Headers before CUDA 12.8 do not name these, and a driver may be newer than the headers.
constexpr auto kErrorContained = static_cast<cudaError_t>(226);
constexpr auto kErrorTensorMemoryLeak = static_cast<cudaError_t>(721);

// What a kernel's first launch, or CUDA's first look at it, returns where neither code nor PTX
// fits.
bool is_lack_of_code(cudaError_t error) noexcept {
  return error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
         error == cudaErrorUnsupportedPtxVersion || error == cudaErrorJitCompilerNotFound ||
         error == cudaErrorJitCompilationDisabled;
}

[[noreturn]] void throw_no_code(cudaError_t error) {
  int device = 0;
  cudaDeviceProp properties{};
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaGetDeviceProperties(&properties, device) != cudaSuccess) {
    cudaGetLastError();
    throw NoCodeError(concat("this program has no code for the GPU (", cudaGetErrorName(error),
                             "); --list-backends says for which it has"));
  }
  throw NoCodeError(lack_of_code(this_compilation(), properties.name,
                                 {properties.major, properties.minor}, cudaGetErrorName(error)));
}

// What an error's name does not say and its user wants to know; "" for most.
std::string_view advice_on(cudaError_t error) noexcept {
  if (error == cudaErrorDevicesUnavailable) {
    return "; the GPU is in use, perhaps by another rank, and its compute mode is exclusive "
           "(nvidia-smi -c DEFAULT shares it), or its mode forbids it, or it is in MIG mode "
           "without an instance";
  }
  return "";
}

}  // namespace

// The errors of which driver_types.h says that the process must be terminated and relaunched, and
// those after which nothing is known or no context is left.
bool is_sticky(cudaError_t error) noexcept {
  constexpr std::array kSticky = {cudaErrorDeviceUninitialized,
                                  cudaErrorECCUncorrectable,
                                  cudaErrorNvlinkUncorrectable,
                                  kErrorContained,
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
                                  kErrorTensorMemoryLeak,
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
  if (is_lack_of_code(error)) throw_no_code(error);
  const std::string message =
      concat(call, ": ", cudaGetErrorName(error), " (", cudaGetErrorString(error), ") at ", file,
             ":", line, advice_on(error));
  if (is_sticky(error)) throw DeviceLostError(message);
  throw CudaError(message);
}

}  // namespace dstune::cuda
