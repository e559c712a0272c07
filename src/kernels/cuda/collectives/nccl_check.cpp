#include "kernels/cuda/collectives/nccl_check.hpp"

#include <cstddef>
#include <string>

#include <cuda_runtime_api.h>

#include "core/base/text.hpp"
#include "core/device/faults.hpp"
#include "core/device/memory_budget.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/libraries/nccl.hpp"

namespace dstune::cuda {

namespace {

std::string last_warning() {
  const char* text = nccl().GetLastError(nullptr);
  return text == nullptr ? "" : text;
}

// Calls of a communicator that does not block run in threads of NCCL, whose CUDA errors are not
// this thread's: the warning alone tells them.
bool is_out_of_memory(ncclResult_t result, cudaError_t error, const std::string& warning) {
  if (result != ncclUnhandledCudaError) return false;
  return error == cudaErrorMemoryAllocation || warning.find("out of memory") != std::string::npos;
}

[[noreturn]] void throw_out_of_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  constexpr Bytes kUnknown = 0;  // NCCL does not say how much it asked for
  throw OutOfMemoryError(MemoryCategory::buckets, kUnknown, total - free, total);
}

}  // namespace

void check_nccl(ncclResult_t result, const char* call, const char* file, int line) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  const cudaError_t error = cudaGetLastError();
  const std::string warning = last_warning();
  if (is_out_of_memory(result, error, warning)) throw_out_of_memory();
  const std::string message =
      concat(call, ": ", nccl().GetErrorString(result),
             warning.empty() ? "" : concat(" (", warning, ")"), " at ", file, ":", line);
  if (result == ncclUnhandledCudaError && is_sticky(error)) throw DeviceLostError(message);
  throw NcclError(message);
}

}  // namespace dstune::cuda
