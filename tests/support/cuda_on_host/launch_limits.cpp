#include "tests/support/cuda_on_host/launch_limits.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tests/support/cuda_on_host/architecture.hpp"
#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/compiled_code.hpp"
#include "tests/support/cuda_on_host/include/cuda_runtime_api.h"
#include "tests/support/cuda_on_host/launch_bounds.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/thread_set.hpp"

namespace cuda_on_host {
namespace {

std::pair<const void*, int> on_this_device(const void* kernel) {
  return {kernel, current_device()};
}

bool fits(dim3 grid, dim3 block) {
  constexpr unsigned kMaxGridX = 0x7fffffff;
  constexpr unsigned kMaxGridYZ = 65535;
  constexpr unsigned kMaxBlockZ = 64;
  const bool zero =
      grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0;
  const bool large_block = block.x > kMaxThreads || block.y > kMaxThreads || block.z > kMaxBlockZ ||
                           block.x * block.y * block.z > kMaxThreads;
  return !zero && !large_block && grid.x <= kMaxGridX && grid.y <= kMaxGridYZ &&
         grid.z <= kMaxGridYZ;
}

std::size_t shared_limit(const void* kernel) {
  const Locked locked;
  const auto found = state().shared_limits.find(on_this_device(kernel));
  return found == state().shared_limits.end() ? kSharedOfEveryBlock
                                              : static_cast<std::size_t>(found->second);
}

int blocks_at_once(int threads, std::size_t shared_bytes) {
  const Architecture& limits = architecture_here();
  if (threads > static_cast<int>(kMaxThreads) || shared_bytes > limits.shared_of_block) return 0;
  const int most =
      std::min(limits.blocks_of_multiprocessor, limits.threads_of_multiprocessor / threads);
  const std::size_t of_block = shared_bytes + (limits.capability >= 80 ? kSharedOfSystem : 0);
  if (of_block == 0) return most;
  return std::min(most, static_cast<int>(limits.shared_of_multiprocessor / of_block));
}

/// Of a function of the runtime that looks at a kernel, for which there has to be code.
template <class Body>
cudaError_t call_of_kernel(const char* function, Body body) {
  return call(function, [&] {
    const cudaError_t missing = find_code();
    return missing != cudaSuccess ? missing : body();
  });
}

}  // namespace

cudaError_t check_launch(const cudaLaunchConfig_t& config, const void* kernel) {
  const dim3 block = config.blockDim;
  if (!fits(config.gridDim, block)) return cudaErrorInvalidConfiguration;
  if (block.x * block.y * block.z > launch_bound_of(kernel)) return cudaErrorLaunchOutOfResources;
  return config.dynamicSmemBytes > shared_limit(kernel) ? cudaErrorInvalidValue : cudaSuccess;
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attr, int value) {
  return call_of_kernel("cudaFuncSetAttribute", [&] {
    if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || static_cast<std::size_t>(value) > architecture_here().shared_of_block) {
      return cudaErrorInvalidValue;
    }
    const Locked locked;
    state().shared_limits[on_this_device(func)] = value;
    return cudaSuccess;
  });
}

/// Static shared memory and registers are not known here.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attr, const void* func) {
  return call_of_kernel("cudaFuncGetAttributes", [&] {
    *attr = {};
    attr->maxThreadsPerBlock = static_cast<int>(launch_bound_of(func));
    attr->numRegs = 32;
    attr->maxDynamicSharedSizeBytes = static_cast<int>(shared_limit(func));
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void* /*func*/,
                                                          int blockSize, size_t dynamicSMemSize) {
  return call_of_kernel("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&] {
    if (blockSize <= 0) return cudaErrorInvalidValue;
    *numBlocks = blocks_at_once(blockSize, dynamicSMemSize);
    return cudaSuccess;
  });
}
