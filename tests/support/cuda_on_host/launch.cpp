// Launches of kernels.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/cuda_on_host/block_runner.hpp"
#include "tests/support/cuda_on_host/call.hpp"
#include "tests/support/cuda_on_host/compiled_code.hpp"
#include "tests/support/cuda_on_host/fault.hpp"
#include "tests/support/cuda_on_host/include/cuda_runtime.h"
#include "tests/support/cuda_on_host/include/dynamic_shared.cuh"
#include "tests/support/cuda_on_host/kernel_name.hpp"
#include "tests/support/cuda_on_host/launch_limits.hpp"
#include "tests/support/cuda_on_host/loading.hpp"
#include "tests/support/cuda_on_host/stream.hpp"

namespace cuda_on_host {
namespace {

constexpr std::size_t kSharedAlignment = 128;

constinit thread_local void* shared = nullptr;

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
    if (const cudaError_t error = find_code()) return error;
    if (const cudaError_t error = check_launch(config, kernel)) return error;
    if (const cudaError_t error = load(kernel)) return error;
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
