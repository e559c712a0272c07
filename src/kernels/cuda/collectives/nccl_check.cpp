#include "kernels/cuda/collectives/nccl_check.hpp"

#include <cstddef>
#include <string>

#include <cuda_runtime_api.h>

#include "core/base/text.hpp"
#include "core/device/faults.hpp"
#include "core/device/memory/memory_budget.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

bool little_is_free() {
  constexpr std::size_t kLittle = std::size_t{256} << 20U;
  std::size_t free = 0;
  std::size_t total = 0;
  return cudaMemGetInfo(&free, &total) == cudaSuccess && free < kLittle;
}

// Calls of a communicator that does not block run in threads of NCCL, whose CUDA errors are not
// this thread's: the warning alone tells them. The same text as before may have been said again.
bool is_out_of_memory(ncclResult_t result, cudaError_t error, const std::string& warning,
                      bool is_new) {
  if (result != ncclUnhandledCudaError) return false;
  if (error == cudaErrorMemoryAllocation) return true;
  const bool says_so = warning.find("out of memory") != std::string::npos;
  return says_so && (is_new || little_is_free());
}

[[noreturn]] void throw_out_of_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  constexpr Bytes kUnknown = 0;  // NCCL does not say how much it asked for
  throw OutOfMemoryError(MemoryCategory::buckets, kUnknown, total - free, total);
}

}  // namespace

std::string last_nccl_warning() {
  const char* text = nccl().GetLastError(nullptr);
  return text == nullptr ? "" : text;
}

void check_nccl(ncclResult_t result, const char* call, const std::string& known_warning,
                const char* file, int line) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const cudaError_t error = cudaGetLastError();
  const std::string warning = last_nccl_warning();
  const bool is_new = warning != known_warning;
  if (is_out_of_memory(result, error, warning, is_new)) throw_out_of_memory();
  const std::string message =
      concat(call, ": ", nccl().GetErrorString(result), is_new ? concat(" (", warning, ")") : "",
             " at ", file, ":", line);
  if (result == ncclUnhandledCudaError && is_sticky(error)) throw DeviceLostError(message);
  throw NcclError(message);
}

}  // namespace dstune::cuda
