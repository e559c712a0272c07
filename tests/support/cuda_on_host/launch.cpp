// Launches of kernels.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/cuda_on_host/block_runner.hpp"
#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/fault.hpp"
#include "tests/support/cuda_on_host/include/cuda_runtime.h"
#include "tests/support/cuda_on_host/include/dynamic_shared.cuh"
#include "tests/support/cuda_on_host/kernel_name.hpp"
#include "tests/support/cuda_on_host/machine_state.hpp"
#include "tests/support/cuda_on_host/stream.hpp"

namespace cuda_on_host {
namespace {

constexpr int kDefaultShared = 48 * 1024;
constexpr int kMaxShared = 227 * 1024;
constexpr std::size_t kSharedAlignment = 128;

constinit thread_local void* shared = nullptr;

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
  return static_cast<std::size_t>(found == state().shared_limits.end() ? kDefaultShared
                                                                       : found->second);
}

BlockRunner& runner_of_this_thread() {
  static thread_local BlockRunner runner;
  return runner;
}

/// Exactly as large as asked for, so that the address sanitizer sees what lies beyond.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) {
    if (bytes > 0 && posix_memalign(&shared, kSharedAlignment, bytes) != 0) misuse("no memory");
  }
  ~SharedMemory() { std::free(std::exchange(shared, nullptr)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
};

}  // namespace

void* dynamic_shared() { return shared; }

cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel,
                   std::function<void()> thread) {
  return call("cudaLaunchKernelEx", [&] {
    require_stream(config.stream);
    if (config.numAttrs != 0) misuse("launch attributes are not supported");
    if (!fits(config.gridDim, config.blockDim)) return cudaErrorInvalidConfiguration;
    if (config.dynamicSmemBytes > shared_limit(kernel)) return cudaErrorInvalidValue;
    enqueue(config.stream, kernel_name(kernel),
            [grid = config.gridDim, block = config.blockDim, bytes = config.dynamicSmemBytes,
             kernel, body = std::move(thread)] {
              const SharedMemory memory(bytes);
              runner_of_this_thread().run_grid(grid, block, body, kernel);
            });
    return cudaSuccess;
  });
}

}  // namespace cuda_on_host

using namespace cuda_on_host;

cudaError_t cudaFuncSetAttribute(const void* func, cudaFuncAttribute attr, int value) {
  return call("cudaFuncSetAttribute", [&] {
    if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || value > kMaxShared) return cudaErrorInvalidValue;
    const Locked locked;
    state().shared_limits[on_this_device(func)] = value;
    return cudaSuccess;
  });
}

/// Static shared memory and registers are not known here.
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attr, const void* func) {
  return call("cudaFuncGetAttributes", [&] {
    *attr = {};
    attr->maxThreadsPerBlock = static_cast<int>(kMaxThreads);
    attr->numRegs = 32;
    attr->maxDynamicSharedSizeBytes = static_cast<int>(shared_limit(func));
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, const void* /*func*/,
                                                          int blockSize, size_t dynamicSMemSize) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&] {
    constexpr int kThreads = 2048;
    if (blockSize <= 0) return cudaErrorInvalidValue;
    const int by_threads = blockSize > static_cast<int>(kMaxThreads) ? 0 : kThreads / blockSize;
    const auto bytes = static_cast<int>(dynamicSMemSize);
    *numBlocks = bytes == 0 ? by_threads : std::min(by_threads, kMaxShared / bytes);
    return cudaSuccess;
  });
}
