#include "kernels/cuda/device/memory_probe.hpp"

#include <algorithm>
#include <string>

#include <cuda_runtime_api.h>

#include "core/base/text.hpp"
#include "kernels/cuda/base/check.hpp"
#include "kernels/cuda/base/handles.hpp"
#include "kernels/cuda/collectives/communicator_cache.hpp"
#include "kernels/cuda/device/cuda_device.hpp"
#include "kernels/cuda/device/gpu.hpp"
#include "kernels/cuda/device/piece_size.hpp"
#include "kernels/cuda/device/warm_up.hpp"
#include "kernels/cuda/gemm/matrix_products.hpp"

namespace dstune::cuda {

namespace {

/// Measures what is taken of a GPU, one thing after the other.
class Account {
 public:
  explicit Account(Bytes free) : left_(free) {}

  /// Measures what was taken since the last time.
  void measure(std::string what) {
    const Bytes free = device_space().free;
    add({std::move(what), left_ - std::min(left_, free), true});
  }
  void estimate(std::string what, Bytes bytes) { add({std::move(what), bytes, false}); }

  Bytes left() const noexcept { return left_; }
  const std::vector<MemoryReserve>& reserves() const noexcept { return reserves_; }

 private:
  void add(MemoryReserve reserve) {
    left_ -= std::min(left_, reserve.bytes);
    reserves_.push_back(std::move(reserve));
  }

  Bytes left_;
  std::vector<MemoryReserve> reserves_;
};

void load(Gpu& gpu, MatrixProducts& products) {
  CudaDevice device(gpu, products, kWarmUp);
  warm_up(device);
}

/// Between buffers in one piece.
MemoryReserve for_gaps(const Gpu& gpu, Bytes left) {
  const std::string& reason = gpu.why_no_segments();
  return {concat("gaps between buffers", reason.empty() ? "" : concat(", as ", reason)),
          slack_of(left), false, reason.empty()};
}

}  // namespace

FreeMemory probe_memory(int index, bool has_peers) {
  DSTUNE_CUDA_CHECK(cudaSetDevice(index));
  DSTUNE_CUDA_CHECK(cudaFree(nullptr));  // makes the context
  const Bytes free = device_space().free;
  Account account(free);
  Gpu gpu(index);
  account.measure("operations' scratch");
  MatrixProducts products;
  account.measure("libraries' workspaces");
  load(gpu, products);
  gpu.release_memory();
  account.measure("kernels");
  account.estimate("kernels loaded later", kLoadedLater);
  if (has_peers) account.estimate("NCCL's buffers", CommunicatorLimits{}.reserve);
  std::vector<MemoryReserve> reserves = account.reserves();
  reserves.push_back(for_gaps(gpu, account.left()));
  return {free, std::move(reserves)};
}

}  // namespace dstune::cuda
